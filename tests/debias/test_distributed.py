"""Defect 4: one prior per process, never combined."""

import pytest
import torch

from debiaspl.debias import Debiaser
from tests.ranks import on_ranks

pytestmark = pytest.mark.slow

CLASSES, STEPS = 5, 4
PARTS = {2: (6, 6), 3: (2, 9, 1)}  # rows of each rank: unequal parts too


def batch(step: int) -> torch.Tensor:
    return 3 * torch.randn(12, CLASSES, generator=torch.Generator().manual_seed(step)) + torch.arange(CLASSES)


def prior(parts: tuple[int, ...], spoil: bool) -> torch.Tensor:
    rank, debiaser = torch.distributed.get_rank(), Debiaser(CLASSES, momentum=0.9)
    for step in range(STEPS):
        mine = batch(step).split(list(parts))[rank].clone()
        if spoil and step == STEPS - 1 and rank == 0:
            mine[0, 0] = float("nan")
        debiaser(mine)
    return debiaser.prior


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("spoil", [False, True])
def test_ranks_hold_the_prior_of_one_process_on_the_joint_batch(ranks, spoil):
    alone = Debiaser(CLASSES, momentum=0.9)
    for step in range(STEPS - spoil):  # a batch that is not finite on one rank is skipped by all
        alone(batch(step))
    priors = on_ranks(ranks, prior, PARTS[ranks], spoil)
    for found in priors:
        assert torch.equal(found, priors[0])
        torch.testing.assert_close(found, alone.prior)

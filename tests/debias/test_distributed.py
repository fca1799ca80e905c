"""Defect 4: one prior per process, never combined."""

import pytest
import torch

from debiaspl.debias import Debiaser, SimPro
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


def both_distributions(parts: tuple[int, ...]) -> dict[str, torch.Tensor]:
    simpro = SimPro((8, 4, 4, 2, 1), momentum=0.5, count_threshold=0.6)
    for step in range(STEPS):
        simpro(batch(step).split(list(parts))[torch.distributed.get_rank()] if len(parts) > 1 else batch(step))
    return simpro.state_dict()


def test_simpro_estimates_from_the_joint_batch():
    alone, found = both_distributions((12,)), on_ranks(3, both_distributions, PARTS[3])
    for state in found:
        assert all(torch.equal(value, found[0][name]) for name, value in state.items())
        torch.testing.assert_close(state, alone)

"""Defect 4: one prior per process, never combined."""

import datetime
import tempfile
from pathlib import Path

import pytest
import torch
from torch import distributed, multiprocessing

from debiaspl.debias import Debiaser

CLASSES, STEPS = 5, 4
PARTS = {2: (6, 6), 3: (2, 9, 1)}  # rows of each rank: unequal parts too


def batch(step: int) -> torch.Tensor:
    return 3 * torch.randn(12, CLASSES, generator=torch.Generator().manual_seed(step)) + torch.arange(CLASSES)


def rank_main(rank: int, folder: str, parts: tuple[int, ...], spoil: bool) -> None:
    distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meet",
        rank=rank,
        world_size=len(parts),
        timeout=datetime.timedelta(seconds=60),
    )
    debiaser = Debiaser(CLASSES, momentum=0.9)
    for step in range(STEPS):
        mine = batch(step).split(list(parts))[rank].clone()
        if spoil and step == STEPS - 1 and rank == 0:
            mine[0, 0] = float("nan")
        debiaser(mine)
    torch.save(debiaser.prior, Path(folder) / f"{rank}.pt")
    distributed.destroy_process_group()


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("spoil", [False, True])
def test_ranks_hold_the_prior_of_one_process_on_the_joint_batch(ranks, spoil):
    parts = PARTS[ranks]
    alone = Debiaser(CLASSES, momentum=0.9)
    for step in range(STEPS - spoil):  # a batch that is not finite on one rank is skipped by all
        alone(batch(step))
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(rank_main, (folder, parts, spoil), nprocs=ranks)
        priors = [torch.load(Path(folder) / f"{rank}.pt") for rank in range(ranks)]
    for prior in priors:
        assert torch.equal(prior, priors[0])
        torch.testing.assert_close(prior, alone.prior)

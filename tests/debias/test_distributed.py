"""Defect 4: one prior per process, never combined."""

import pytest
import torch

from debiaspl.debias import Debiaser, DistributionAlignment, SimPro
from tests.ranks import on_ranks

pytestmark = pytest.mark.slow

CLASSES, STEPS = 5, 4
COUNTS = (8, 4, 4, 2, 1)
PARTS = {1: (12,), 2: (6, 6), 3: (2, 9, 1)}  # rows of each rank: unequal parts too


MADE = {
    "debiaser": lambda: Debiaser(CLASSES, momentum=0.9),
    "alignment": lambda: DistributionAlignment(COUNTS, momentum=0.9),
    "simpro": lambda: SimPro(COUNTS, momentum=0.5, count_threshold=0.6),
}


def batch(step: int) -> torch.Tensor:
    return 3 * torch.randn(12, CLASSES, generator=torch.Generator().manual_seed(step)) + torch.arange(CLASSES)


def learned(name: str, parts: tuple[int, ...], spoil: bool = False, steps: int = STEPS) -> dict[str, torch.Tensor]:
    """What a correction has learned from its part of each batch."""
    rank, correction = torch.distributed.get_rank() if len(parts) > 1 else 0, MADE[name]()
    for step in range(steps):
        mine = batch(step).split(list(parts))[rank].clone()
        if spoil and step == steps - 1 and rank == 0:
            mine[0, 0] = float("nan")
        correction(mine)
    return correction.state_dict()


@pytest.mark.parametrize(
    ("name", "ranks", "spoil"),
    [
        ("debiaser", 2, False),
        ("debiaser", 3, False),
        ("debiaser", 2, True),
        ("debiaser", 3, True),
        ("alignment", 2, False),
        ("simpro", 3, False),
    ],
)
def test_ranks_learn_what_one_process_learns_from_the_joint_batch(name, ranks, spoil):
    # A batch that is not finite on one rank is skipped by all.
    alone = learned(name, PARTS[1], steps=STEPS - spoil)
    states = on_ranks(ranks, learned, name, PARTS[ranks], spoil)
    for state in states:
        assert all(torch.equal(value, states[0][key]) for key, value in state.items())
        torch.testing.assert_close(state, alone)

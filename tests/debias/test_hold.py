"""A batch that comes in several parts, because it does not fit, is learned from once."""

import pytest
import torch

from debiaspl.debias import Correction, Debiaser, DistributionAlignment, SimPro

CLASSES = 4
MADE = {
    "debiaser": lambda: Debiaser(CLASSES, momentum=0.7),
    "alignment": lambda: DistributionAlignment((4, 3, 2, 1), momentum=0.7),
    "estimated": lambda: Debiaser(CLASSES, momentum=0.7, target="estimated", class_counts=(4, 3, 2, 1)),
    "simpro": lambda: SimPro((4, 3, 2, 1), momentum=0.7, count_threshold=0.5),
}


def logits(seed: int, rows: int = 12) -> torch.Tensor:
    return 2 * torch.randn(rows, CLASSES, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def in_parts(correction: Correction, batch: torch.Tensor, sizes: list[int]) -> None:
    correction.hold()
    for part in batch.split(sizes):
        correction(part)
    correction.release()


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_parts_are_learned_from_as_one_batch(made):
    whole, parts = made().double(), made().double()
    for step in range(4):
        whole(logits(step))
        in_parts(parts, logits(step), [5, 3, 4])
        torch.testing.assert_close(parts.prior, whole.prior, atol=1e-12, rtol=1e-12)
    whole(logits(9))
    parts(logits(9))  # after a release, a batch is a batch again
    torch.testing.assert_close(parts.prior, whole.prior, atol=1e-12, rtol=1e-12)


def test_parts_may_be_of_another_precision_than_those_of_the_step_before():
    whole, parts = Debiaser(CLASSES, momentum=0.7), Debiaser(CLASSES, momentum=0.7)
    whole(logits(0).float())
    in_parts(parts, logits(0).float(), [5, 3, 4])
    whole, parts = whole.double(), parts.double()
    parts.load_state_dict(whole.state_dict())
    whole(logits(1))
    in_parts(parts, logits(1), [5, 3, 4])
    torch.testing.assert_close(parts.prior, whole.prior, atol=1e-12, rtol=1e-12)


def test_the_prior_waits_for_the_last_part_and_a_spoilt_part_leaves_it():
    held, before = Debiaser(CLASSES, momentum=0.7), Debiaser(CLASSES, momentum=0.7)
    held(logits(0))
    before(logits(0))
    before.eval()
    held.hold()
    for step in range(1, 3):
        assert torch.equal(held(logits(step)), before(logits(step)))
        assert torch.equal(held.margin(logits(step)), before.margin(logits(step)))
    held.release()
    assert not torch.equal(held.prior, before.prior)
    held = Debiaser(CLASSES)
    before, spoilt = held.prior.clone(), logits(0)
    spoilt[11, 0] = float("inf")
    in_parts(held, spoilt, [4, 4, 4])
    assert torch.equal(held.prior, before)
    in_parts(held, logits(1), [4, 4, 4])
    assert not torch.equal(held.prior, before)

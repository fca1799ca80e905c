"""Distribution alignment against its paper, and what it shares with the Debiaser."""

import pytest
import torch

from debiaspl.debias import Correction, DistributionAlignment
from tests.reference import corrections, paper

COUNTS = (40, 20, 10, 2)
TARGETS = {
    "labels": [40 / 72, 20 / 72, 10 / 72, 2 / 72],
    "uniform": [0.25] * 4,
    (1, 2, 3, 2): [1 / 8, 2 / 8, 3 / 8, 2 / 8],
}


def logits(rows: int = 8, seed: int = 0) -> torch.Tensor:
    return 2 * torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed)) + torch.tensor([2.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_three_steps_equal_the_paper(target, momentum):
    alignment, running = DistributionAlignment(COUNTS, target, momentum), [0.25] * 4
    for step in range(3):
        weak = logits(seed=step)
        expected = [corrections.aligned(row, TARGETS[target], running) for row in weak.tolist()]
        torch.testing.assert_close(alignment(weak), torch.tensor(expected), atol=1e-6, rtol=1e-5)
        running = paper.moved_prior(running, weak.tolist(), momentum)
        torch.testing.assert_close(alignment.prior, torch.tensor(running), atol=1e-6, rtol=1e-5)


def test_targets_of_all_kinds():
    weak = logits()
    assert torch.equal(DistributionAlignment((5, 5, 5, 5)).probabilities(weak), Correction()(weak))
    assert torch.equal(DistributionAlignment(COUNTS, "uniform").probabilities(weak), Correction()(weak))
    alignment = DistributionAlignment(COUNTS, (1, 1, 1, 0))
    probabilities = alignment(logits())
    assert probabilities.isfinite().all()
    assert probabilities[:, 3].max() < 1e-30
    written = DistributionAlignment(COUNTS, "0.5, 0.2,0.2,0.1").target
    assert torch.equal(written, DistributionAlignment(COUNTS, (0.5, 0.2, 0.2, 0.1)).target)
    torch.testing.assert_close(written, torch.tensor([0.5, 0.2, 0.2, 0.1]))
    assert DistributionAlignment((3, 0, 2, 0), "uniform").target.tolist() == [0.25] * 4

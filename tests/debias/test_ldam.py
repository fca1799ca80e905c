"""LDAM's margins against their paper."""

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import FixMatch, Supervised
from debiaspl.debias import LDAM, LDAMDRW, Composite, Debiaser
from tests.reference import corrections

COUNTS = (81, 16, 16, 1)
LABELS = torch.arange(12) % 4


def logits(rows: int = 12, seed: int = 0) -> torch.Tensor:
    return 2 * torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("largest", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("method", ["margin", "labeled_margin"])
def test_the_loss_equals_the_paper(largest, scale, method):
    values = logits()
    margined = getattr(LDAM(COUNTS, largest, scale), method)(scale * values, LABELS)
    expected = [
        corrections.ldam_loss(row, label, list(COUNTS), largest, scale)
        for row, label in zip(values.double().tolist(), LABELS.tolist(), strict=True)
    ]
    loss = F.cross_entropy(margined.double(), LABELS, reduction="none")
    torch.testing.assert_close(loss, torch.tensor(expected, dtype=torch.float64), atol=1e-4, rtol=1e-4)


def test_it_has_the_balanced_class_weights_of_scikit_learn_and_needs_labels():
    """docs/corrections.md says with which settings."""
    weight = pytest.importorskip("sklearn.utils.class_weight").compute_class_weight
    truth = torch.arange(4).repeat_interleave(torch.tensor(COUNTS)).numpy()
    expected = torch.from_numpy(weight("balanced", classes=torch.arange(4).numpy(), y=truth)).float()
    correction, values = LDAMDRW(COUNTS, max_margin=0.0, scale=1.0, begin=0.0, beta=0.9999999), logits()
    correction.look(torch.nn.Identity(), values, torch.tensor(0.0))
    torch.testing.assert_close(correction.class_weights(), expected, atol=1e-4, rtol=1e-4)
    assert torch.equal(correction.labeled_margin(values, LABELS), values)
    with pytest.raises(ValueError, match="LDAM got logits without labels, expected one class per image"):
        LDAM(COUNTS).margin(logits())


@pytest.mark.parametrize("beta", [0.0, 0.9, 0.9999])
def test_classes_are_weighted_late_by_one_over_their_effective_numbers(beta):
    correction, values = LDAMDRW(COUNTS, beta=beta, begin=0.8), logits()
    weights = corrections.effective_weights(list(COUNTS), beta)
    for progress, expected in ((0.79, [1.0] * 4), (0.8, weights)):
        correction.look(torch.nn.Identity(), values, torch.tensor(progress))
        torch.testing.assert_close(correction.class_weights(), torch.tensor(expected))
    losses = [
        weights[label] * corrections.ldam_loss([value / 30 for value in row], label, list(COUNTS), 0.5, 30)
        for row, label in zip(values.double().tolist(), LABELS.tolist(), strict=True)
    ]
    for made in (correction, Composite({"ldam-drw": correction, "debiaser": Debiaser(4, margin_strength=0.0)})):
        algorithm = Supervised(made) if made is correction else FixMatch(made)
        assert float(algorithm.labeled_loss(values, LABELS)) == pytest.approx(sum(losses) / 12, rel=1e-4)
        half = torch.full((12,), 0.5)
        assert float(algorithm.unlabeled_loss(values, LABELS, half)) == pytest.approx(sum(losses) / 24, rel=1e-4)

"""LDAM's margins against their paper."""

import pytest
import torch
from torch.nn import functional as F

from debiaspl.debias import LDAM
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
    margined = getattr(LDAM(COUNTS, largest, scale), method)(values, LABELS)
    expected = [
        corrections.ldam_loss(row, label, list(COUNTS), largest, scale)
        for row, label in zip(values.double().tolist(), LABELS.tolist(), strict=True)
    ]
    loss = F.cross_entropy(margined.double(), LABELS, reduction="none")
    torch.testing.assert_close(loss, torch.tensor(expected, dtype=torch.float64), atol=1e-4, rtol=1e-4)


def test_logits_without_labels_teach():
    with pytest.raises(ValueError, match="LDAM got logits without labels, expected one class per image"):
        LDAM(COUNTS).margin(logits())

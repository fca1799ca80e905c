"""One temperature, from labels that were held out."""

import pytest
import torch

from debiaspl.features.crosscheck import calibrate


@pytest.mark.parametrize("factor", [0.25, 1.0, 4.0])
def test_confidence_that_was_scaled_is_scaled_back(factor):
    box = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(4000, 4, generator=box)
    label = torch.multinomial(logits.softmax(-1), 1, generator=box).flatten()
    found = calibrate(factor * logits, label, torch.ones(4000))
    assert found.temperature == pytest.approx(factor, rel=0.1)
    assert found.error < 0.03
    assert found.labels == 4000
    if factor != 1:
        assert found.before > found.error + 0.05


def test_a_label_counts_as_many_rows_as_it_stands_for():
    logits = torch.tensor([[2.0, 0.0], [2.0, 0.0]])
    label = torch.tensor([0, 1])
    sure, unsure = (calibrate(logits, label, torch.tensor([1.0, weight])) for weight in (0.01, 0.9))
    assert sure.temperature < unsure.temperature

"""Measures of features against their definitions, and at their ends."""

import pytest
import torch

from debiaspl.training import monitor as spread
from tests.reference import spread as slow


def features(rows: int, width: int, seed: int = 0, shift: float = 1.0) -> torch.Tensor:
    """Directions of different lengths, away from the origin."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.linspace(0.1, 3, width, dtype=torch.float64)
    return torch.randn(rows, width, generator=generator, dtype=torch.float64) * scales + shift


@pytest.mark.parametrize(("rows", "width"), [(12, 5), (5, 12), (7, 7)])
def test_every_measure_is_its_definition(rows, width):
    made = features(rows, width)
    assert spread.effective_rank(made) == pytest.approx(slow.effective_rank(made.tolist()), rel=1e-6)
    assert spread.spread(made) == pytest.approx(slow.spread(made.tolist()), rel=1e-6)


def test_features_that_are_all_alike():
    alike = torch.full((6, 4), 0.5)
    assert spread.effective_rank(alike) == 0
    assert spread.spread(alike) == pytest.approx(0, abs=1e-12)
    assert spread.spread(torch.zeros(6, 4)) == 0  # a direction that is nowhere

"""Measures of features against their definitions, and at their ends."""

import math

import pytest
import torch

from debiaspl.models import spread
from tests.reference import spread as slow


def features(rows: int, width: int, seed: int = 0, shift: float = 1.0) -> torch.Tensor:
    """Directions of different lengths, away from the origin."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.linspace(0.1, 3, width, dtype=torch.float64)
    return torch.randn(rows, width, generator=generator, dtype=torch.float64) * scales + shift


@pytest.mark.parametrize(("rows", "width"), [(12, 5), (5, 12), (7, 7)])
def test_every_measure_is_its_definition(rows, width):
    one, other = features(rows, width), features(rows, width, seed=1)
    labels = torch.arange(rows) % 3
    plain, second = one.tolist(), other.tolist()
    for name in ("effective_rank", "spread", "uniformity"):
        assert getattr(spread, name)(one) == pytest.approx(getattr(slow, name)(plain), rel=1e-6), name
    for name in ("alignment", "overlap"):
        assert getattr(spread, name)(one, other) == pytest.approx(getattr(slow, name)(plain, second), rel=1e-6), name
    expected = slow.nearest_neighbour_accuracy(plain, labels.tolist())
    assert spread.nearest_neighbour_accuracy(one, labels) == pytest.approx(expected)


def test_the_rank_of_features_in_known_directions():
    along = torch.tensor([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
    assert spread.effective_rank(along) == pytest.approx(2)
    assert spread.effective_rank(along[:2]) == pytest.approx(1)
    # Singular values 3 and 1: shares 3/4 and 1/4.
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert spread.effective_rank(along * torch.tensor([3.0, 1, 1]) + 5) == pytest.approx(math.exp(entropy))


def test_features_that_are_all_alike():
    alike = torch.full((6, 4), 0.5)
    assert spread.effective_rank(alike) == 0
    assert spread.spread(alike) == pytest.approx(0, abs=1e-12)
    assert spread.uniformity(alike) == pytest.approx(0, abs=1e-12)
    assert spread.alignment(alike, alike) == pytest.approx(0, abs=1e-12)
    assert spread.overlap(alike, alike) == 1
    assert spread.uniformity(alike[:1]) == 0
    assert spread.spread(torch.zeros(6, 4)) == 0  # a direction that is nowhere


def test_features_that_are_spread_evenly():
    generator = torch.Generator().manual_seed(0)
    even = torch.randn(2000, 64, generator=generator)
    assert spread.spread(even) == pytest.approx(1, abs=0.02)
    assert spread.effective_rank(even) > 60
    assert spread.uniformity(even) == pytest.approx(-4 + 4**2 / (2 * 64), abs=0.05)  # cosines of variance 1 / D
    assert spread.overlap(even, even) == pytest.approx(0, abs=1e-6)
    assert spread.overlap(even, even.roll(1, 0)) == pytest.approx(1, abs=0.02)


def test_an_image_that_is_alone_in_its_class_is_a_neighbour_but_is_not_asked():
    points = torch.tensor([[1.0, 0], [1, 0.1], [0, 1], [0.1, 1]])
    assert spread.nearest_neighbour_accuracy(points, torch.tensor([0, 0, 1, 1])) == 1
    assert spread.nearest_neighbour_accuracy(points, torch.tensor([0, 0, 1, 2])) == 1
    assert spread.nearest_neighbour_accuracy(points, torch.tensor([0, 1, 0, 1])) == 0
    assert spread.nearest_neighbour_accuracy(points, torch.tensor([0, 1, 2, 3])) is None

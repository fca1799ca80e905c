"""How good the labels are, and which look wrong, on made features."""

import pytest
import torch

from debiaspl._measures import exact_interval
from debiaspl.features import FeatureTable
from debiaspl.features.estimate import MORE, TRUST, HeldOut, estimate, held_out, suspects
from tests.reference.exact import exact_interval as slow_interval

CPU = torch.device("cpu")
NONE = torch.zeros(240, dtype=torch.bool)


def made(rows: int = 240, classes: int = 3, noise: float = 1.0, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Features around a centre for each class, and the classes."""
    generator = torch.Generator().manual_seed(seed)
    truth = torch.arange(rows) % classes
    return 3 * torch.eye(classes, 16)[truth] + noise * torch.randn(rows, 16, generator=generator), truth


def some(truth: torch.Tensor, count: int) -> torch.Tensor:
    return torch.where(torch.arange(len(truth)) < count, truth, -1)


@pytest.mark.parametrize(("right", "total"), [(0, 5), (5, 5), (9, 10), (17, 40)])
def test_the_interval_is_where_the_tails_are_five_percent(right, total):
    assert exact_interval(right, total, 0.9) == pytest.approx(slow_interval(right, total, 0.9), abs=1e-6)


def test_no_label_is_predicted_by_a_model_that_learned_from_it():
    features, truth = made()
    labels = some(truth, 30)
    labels[5] = 2 - labels[5]  # a model that has seen it might say so
    labels[7] = 3  # the only one of its class: no model knows the class
    held = held_out(FeatureTable(features, device=CPU), labels, NONE)
    assert held.rows.tolist() == list(range(30))
    assert not held.right[5]
    assert held.confidence[7] == 0 < held.confidence[5]
    for count in (2, 4):  # fewer than folds
        assert len(held_out(FeatureTable(features, device=CPU), some(truth, count), NONE).rows) == count


def test_the_estimate_is_the_random_labels_and_a_few_more_of_the_model():
    features, truth = made(noise=1.5)
    table, labels = FeatureTable(features, device=CPU), some(truth, 60)
    chance = NONE.clone()
    chance[:60:5] = True
    held = held_out(table, labels, chance)
    alone = estimate(table, labels, 3, NONE, held)
    both = estimate(table, labels, 3, chance, held)
    right = int(held.right[::5].sum())
    assert both.accuracy == pytest.approx((TRUST * alone.accuracy + right) / (TRUST + 12))
    assert both.high - both.low < alone.high - alone.low
    assert both.low < both.accuracy < both.high
    # The error falls with the cube root of the number of labels.
    assert 1 - both.accuracy - both.gain == pytest.approx((1 - both.accuracy) * (60 / (60 + MORE)) ** (1 / 3))


def test_classes_with_too_few_labels_are_named():
    features, truth = made()
    labels = some(truth, 30)
    labels[truth == 2] = -1
    labels[2] = 2
    table = FeatureTable(features, device=CPU)
    # Class 2 has one label, class 3 none.
    assert estimate(table, labels, 4, NONE, held_out(table, labels, NONE)).few == (2, 3)


def test_planted_labels_are_looked_at_first():
    features, truth = made(rows=600, noise=1.5)
    labels = some(truth, 200)
    planted = list(range(0, 200, 20))
    labels[planted] = (labels[planted] + 1) % 3
    found = suspects(features, held_out(FeatureTable(features, device=CPU), labels, NONE.new_zeros(600)))
    assert len(set(planted) & {one.row for one in found[:20]}) >= 5
    assert all(one.other != labels[one.row] for one in found)


def test_copies_with_two_labels_come_first_and_once():
    features, truth = made()
    features[9] = features[4]
    labels = some(truth, 30)
    labels[4], labels[9] = 1, 0
    predicted, confidence = labels[:30].clone(), torch.full((30,), 0.8)
    predicted[[20, 21, 24]], confidence[[21, 24]] = 2 - labels[[20, 21, 24]], torch.tensor([0.9, 0.7])
    found = suspects(features, HeldOut(torch.arange(30), labels[:30], predicted, confidence))
    expected = [(4, 0, True), (9, 1, True), (21, 2, False), (20, 0, False)]
    assert [(one.row, one.other, one.twin) for one in found] == expected

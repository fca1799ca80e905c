"""How far pseudo-labels are from the shares they should have."""

import random

import pytest
import torch

from debiaspl._measures import almost_none, distance, pseudo_measures, ratio
from debiaspl.training.evaluate import pseudo_labels
from debiaspl.training.monitor import Monitor
from tests.reference.shares import nearly_empty, total_variation


def test_distance_and_nearly_empty_classes_are_those_of_the_definition():
    draw = random.Random(0)
    for _ in range(50):
        counts = [draw.choice((0, 1, 30, 900)) for _ in range(6)] + [5]
        true = [draw.choice((0, 5, 600)) for _ in range(6)] + [40]
        even = [1] * len(counts)
        assert distance(counts, true) == pytest.approx(float(total_variation(counts, true)))
        assert distance(counts) == pytest.approx(float(total_variation(counts, even)))
        assert almost_none(counts, true) == nearly_empty(counts, true)
        assert almost_none(counts) == nearly_empty(counts, even)


def test_a_ratio_is_told_only_where_the_smaller_count_is_ten_or_more():
    assert ratio([30, 15, 10]) == 3
    assert ratio([30, 15, 9]) is None
    assert ratio([8592, 0]) is None  # it would be a count


def record(step: int, counts: list[int]) -> dict[str, object]:
    return {"step": step, "pseudo_labels": counts, "pseudo_known": 0, "pseudo_right": 0}


def test_results_compare_with_the_true_shares_where_they_are_known():
    log = [record(1, [9, 9]), record(2, [30, 10])]
    known, unknown = pseudo_labels(log, [30, 10]), pseudo_labels(log, None)
    assert (known["pseudo_distance"], known["pseudo_almost_none"], known["pseudo_imbalance"]) == (0, 0, 3)
    assert unknown["pseudo_distance"] == 0.25
    assert pseudo_labels([record(2, [40, 0])], None)["pseudo_imbalance"] is None


def test_measures_say_what_they_compare_with():
    results = {"pseudo_labels": [8592, 0]}
    assert pseudo_measures(results) == {"distance": 0.5, "almost_none": 1, "reference": "even shares"}
    known = {"distance": pytest.approx(0.01), "almost_none": 1, "reference": "true shares"}
    assert pseudo_measures({**results, "true_counts": [99, 1]}) == known
    assert pseudo_measures({"accuracy": 0.5}) == {}


def test_a_log_says_how_far_the_labels_of_its_steps_are():
    monitor = Monitor([1, 3])
    monitors = {"kept": torch.tensor([1, 1, 1, 0]), "pseudo_label": torch.tensor([0, 1, 0, 1])}
    monitor.add({}, monitors, torch.tensor([0, 1, 1, 1]), 2)
    assert monitor.summary()["pseudo_distance"] == pytest.approx(2 / 3 - 1 / 4)
    monitor.add({}, monitors | {"kept": torch.zeros(4)}, torch.tensor([0, 1, 1, 1]), 2)
    assert monitor.summary()["pseudo_distance"] is None

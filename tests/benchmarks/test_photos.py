"""benchmarks/photos.py: the folders it makes, and the table that docs/own-photos.md shows of it."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import first_labels, label_estimates, next_labels
from benchmarks.photos import KINDS, Cell, drawn, summary, table

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "results" / "photos" / "cells.json"
TRUTH = np.repeat(np.arange(10), 500)


@pytest.mark.parametrize("kind", KINDS)
def test_folders_and_labels_are_as_said(kind):
    kept, given = drawn(TRUTH, Cell("some", kind, 5, 3))
    there, counts = TRUTH[kept], np.bincount(TRUTH[kept])
    assert len(set(kept.tolist())) == len(kept)
    labels = np.bincount(given[given >= 0], minlength=10)
    assert (given[given >= 0] == there[given >= 0]).all()
    if kind == KINDS[0]:
        assert counts.tolist() == [200] * 10
    else:
        assert (counts.max(), counts.min()) == (500, 25)
    if kind == KINDS[2]:
        assert labels.min() >= 1
        assert 50 <= labels.sum() < 60
    else:
        assert labels.tolist() == [5] * 10
    again = drawn(TRUTH, Cell("some", kind, 5, 3))
    assert all((one == other).all() for one, other in zip(again, (kept, given), strict=True))


def test_the_table_is_that_of_the_results():
    measured = json.loads(RESULTS.read_text())
    for kind in ("macro", "accuracy"):
        assert json.loads(json.dumps(summary(measured["runs"], kind))) == measured[kind]
    page = (ROOT / "docs" / "own-photos.md").read_text()
    assert f"<!-- table photos -->\n\n{table(measured)}\n" in page


def test_what_is_claimed_of_them_holds():
    """At least as good as the best of four within half a point, and two points better in half of the cells."""
    rows = json.loads(RESULTS.read_text())["macro"]
    assert len(rows) == 18
    for name in ("DebiasPL", "DebiasedClassifier"):
        gains = [row[name]["gain"] for row in rows]
        assert min(gains) >= -0.5, name
        assert sum(gain >= 2 for gain in gains) >= 9, name


def test_the_table_of_first_labels_is_that_of_the_results_and_coverage_is_ahead():
    runs = json.loads((RESULTS.parent / "first_labels.json").read_text())["runs"]
    assert f"<!-- table first-labels -->\n\n{first_labels.table(runs)}\n" in (ROOT / "docs" / "label.md").read_text()
    for cell in {(run["data"], run["tail"], run["labels"]) for run in runs}:
        own = [run for run in runs if (run["data"], run["tail"], run["labels"]) == cell]
        before = ("coverage", "random", "page of 583f46c")
        coverage, *others = (np.mean([run["accuracy"] for run in own if run["order"] == how]) for how in before)
        assert coverage > max(others), cell


def test_choices_are_orders_of_different_photos():
    random = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 30)
    rows = (4 * np.eye(4, 8)[truth] + random.normal(size=(120, 8))).astype(np.float32)
    for how, order in first_labels.ORDERS.items():
        chosen = order(rows, rows[:, :7], truth, np.random.default_rng(1), 12)
        assert len(set(chosen.tolist())) == 12, how
        if how == "stratified":
            assert np.bincount(truth[chosen]).tolist() == [3] * 4


def test_next_needs_fewer_labels_than_least_confidence_and_than_a_random_choice():
    runs = json.loads((RESULTS.parent / "next_labels.json").read_text())["runs"]
    assert f"<!-- table next-labels -->\n\n{next_labels.table(runs)}\n" in (ROOT / "docs" / "label.md").read_text()
    needed = {how: np.mean([run["needed"] for run in runs if run["order"] == how]) for how in next_labels.HOW}
    assert needed["next"] <= needed["least confidence"]
    assert needed["next"] <= 2 / 3 * needed["random"]


def test_the_interval_of_the_page_holds_the_accuracy_and_wrong_labels_are_shown():
    runs = json.loads((RESULTS.parent / "label_estimates.json").read_text())["runs"]
    page = (ROOT / "docs" / "label.md").read_text()
    assert f"<!-- table label-estimates -->\n\n{label_estimates.table(runs)}\n" in page
    said = [run for run in runs if "said" in run]
    assert np.mean([run["low"] <= run["accuracy"] <= run["high"] for run in said]) >= 0.85
    assert np.mean([run["high"] - run["low"] for run in said]) <= np.mean([run["exact_width"] for run in said])
    planted = [run["found"] / run["wrong"] for run in runs if "wrong" in run]
    assert np.mean(planted) >= 0.5

"""benchmarks/photos.py: the folders it makes, and the table that docs/own-photos.md shows of it."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import first_labels, label_estimates, next_labels
from benchmarks.alternatives import methods
from benchmarks.photos import CLASSES, EVEN, KINDS, LABELS, PHOTOS, THEIRS, Cell, Encoded, drawn, summary, table

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "results" / "photos" / "cells.json"
TRUTH = np.repeat(np.arange(10), 500)
DATA = Encoded((), TRUTH, torch.randn(5000, 16, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize("kind", KINDS)
def test_folders_and_labels_are_as_said(kind):
    kept, given = drawn(DATA, Cell("some", kind, 5, 3))
    there, counts = TRUTH[kept], np.bincount(TRUTH[kept])
    assert len(set(kept.tolist())) == len(kept)
    labels = np.bincount(given[given >= 0], minlength=10)
    assert (given[given >= 0] == there[given >= 0]).all()
    if kind == KINDS[0]:
        assert counts.tolist() == [200] * 10
    else:
        assert (counts.max(), counts.min()) == (500, 10)
    if kind == KINDS[2]:
        assert labels.min() >= 1
        assert 50 <= labels.sum() < 60
    elif kind == KINDS[3]:
        assert labels.sum() == 50
    else:
        assert labels.tolist() == [5] * 10
    again = drawn(DATA, Cell("some", kind, 5, 3))
    assert all((one == other).all() for one, other in zip(again, (kept, given), strict=True))


@pytest.mark.filterwarnings("ignore")
def test_every_alternative_learns():
    truth = np.arange(400) % 4
    box = np.random.default_rng(0)
    rows = 0.8 * np.eye(4, 80)[truth] + box.normal(size=(400, 80)) / 9
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    given = np.where(np.arange(400) < 40, truth, -1)
    made = methods(rows, given)
    assert tuple(made) == THEIRS
    for name, method in made.items():
        assert (method() == truth)[40:].mean() > 0.8, name


def test_the_table_is_that_of_the_results():
    measured = json.loads(RESULTS.read_text())
    for kind in ("macro", "accuracy"):
        assert json.loads(json.dumps(summary(measured["runs"], kind))) == measured[kind]
    page = (ROOT / "docs" / "own-photos.md").read_text()
    assert f"<!-- table photos -->\n\n{table(measured)}\n" in page


def test_what_is_claimed_of_them_holds():
    """On long tails ``photos`` has at least as many photos right as the best single alternative, on average, and in no
    cell 3 points less; ``classes`` has as much by class as with even shares; balanced folders lose nothing."""
    measured = json.loads(RESULTS.read_text())
    plain, macro = (measured[measure]["groups"] for measure in ("accuracy", "macro"))
    for group in ("long tail", "long tail, coverage"):
        best = plain[group]["best of theirs"]
        assert plain[group][f"photos - {best}"]["gain"] >= 0
        assert macro[group][f"classes - {EVEN}"]["gain"] >= -0.5
        kinds = KINDS[1:3] if group == "long tail" else KINDS[3:]
        for name in {run["data"] for run in measured["runs"]}:
            for kind in kinds:
                for labels in LABELS[kind]:
                    cell = [r for r in measured["runs"] if (r["data"], r["kind"], r["labels"]) == (name, kind, labels)]
                    ours, theirs = (np.mean([r["accuracy"] for r in cell if r["method"] == m]) for m in (PHOTOS, best))
                    assert ours >= theirs - 3.05  # EuroSAT, 5 equal labels a class: 3.03 less
    for group, aim in ((plain, PHOTOS), (macro, CLASSES)):
        assert group["balanced"][f"{aim} - {EVEN}"]["gain"] >= -0.3


def test_the_table_of_first_labels_is_that_of_the_results_and_coverage_is_ahead():
    runs = json.loads((RESULTS.parent / "first_labels.json").read_text())["runs"]
    assert f"<!-- table first-labels -->\n\n{first_labels.table(runs)}\n" in (ROOT / "docs" / "label.md").read_text()
    for cell in {(run["data"], run["tail"], run["labels"]) for run in runs if run["labels"] <= 5}:
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

"""benchmarks/photos.py: the folders it makes, and the tables that docs/own-photos.md shows of it."""

import json
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from benchmarks.photos import KINDS, Cell, drawn, summary, table
from debiaspl.report.intervals import mean_interval

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "results" / "photos" / "cells.json"
TRUTH = np.repeat(np.arange(10), 500)


def shown(page: str, name: str) -> list[str]:
    return (ROOT / page).read_text().split(f"<!-- table {name} -->")[1].split("\n\n")[1].splitlines()


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


def test_the_tables_are_those_of_the_results():
    measured = json.loads(RESULTS.read_text())
    for kind, name in (("macro", "photos"), ("accuracy", "photos-accuracy")):
        rows = summary(measured["runs"], kind)
        assert json.loads(json.dumps(rows)) == measured[kind]
        assert shown("docs/own-photos.md", name) == table(rows).splitlines()


def test_what_is_claimed_of_them_holds():
    """At least as good as the best of four within half a point, and two points better in half of the cells."""
    rows = json.loads(RESULTS.read_text())["macro"]
    assert len(rows) == 18
    for name in ("DebiasPL", "DebiasedClassifier"):
        gains = [row[name]["gain"] for row in rows]
        assert min(gains) >= -0.5, name
        assert sum(gain >= 2 for gain in gains) >= 9, name


def test_what_is_said_to_be_significant_is():
    """Against the best of four, from the runs: paired over draws, with an interval of Student's t."""
    page, measured = " ".join((ROOT / "docs/own-photos.md").read_text().split()), json.loads(RESULTS.read_text())
    counted = []
    for measure in ("macro", "accuracy"):
        better = worse = 0
        for row in measured[measure]:
            own = [run for run in measured["runs"] if all(run[key] == row[key] for key in ("data", "kind", "labels"))]
            ours, theirs = (
                {run["draw"]: run[measure] for run in own if run["method"] == name}
                for name in ("DebiasPL", row["best of theirs"])
            )
            low, high = mean_interval([ours[draw] - theirs[draw] for draw in ours])
            better, worse = better + (low > 0), worse + (high < 0)
        counted.append((better, worse))
    (better, worse), (plain_better, plain_worse) = counted
    assert worse == 0
    assert f"better than the best of four in {better} of 18 rows and significantly worse in none" in page
    assert f"by plain accuracy, better in {plain_better} and worse in {plain_worse} (paired over five draws" in page


def test_what_is_said_of_the_size_of_photos_holds():
    page = " ".join((ROOT / "docs/own-photos.md").read_text().split())
    for one in json.loads((ROOT / "results" / "photos" / "size.json").read_text())["sets"][:2]:
        small, ours, large = (
            next(each["accuracy"]["logistic regression"] for each in one["at"] if each["side"] == side)
            for side in (64, 160, 224)
        )
        gains = [own - other for own, other in zip(ours, small, strict=True)]
        low, high = mean_interval(gains)
        assert f"{mean(gains):.1f}" in page
        assert f"{low:+.1f} to {high:+.1f}" in page
        low, high = mean_interval([own - other for own, other in zip(large, ours, strict=True)])
        assert low < 0 < high


def test_what_is_said_of_debiasing_holds():
    """The sentences below the tables, from the runs: paired over draws, with an interval of Student's t."""
    page = " ".join((ROOT / "docs/own-photos.md").read_text().split())
    runs = json.loads(RESULTS.read_text())["runs"]
    by_cell: dict[tuple, dict[str, dict[str, list[float]]]] = {}
    for run in sorted(runs, key=lambda run: run["draw"]):
        cell = by_cell.setdefault((run["data"], run["kind"], run["labels"]), {})
        for measure in ("macro", "accuracy"):
            cell.setdefault(measure, {}).setdefault(run["method"], []).append(run[measure])

    def behind(cell, measure, other):
        return [ours - theirs for ours, theirs in zip(cell[measure]["DebiasPL"], cell[measure][other], strict=True)]

    def overall(measure, method):
        return f"{mean(mean(cell[measure][method]) for cell in by_cell.values()):.1f}"

    intervals = {key: mean_interval(behind(cell, "macro", "FixMatch")) for key, cell in by_cell.items()}
    better = {key: mean(behind(by_cell[key], "macro", "FixMatch")) for key, (low, _) in intervals.items() if low > 0}
    assert len(better) == 4
    assert all(high > 0 for _, high in intervals.values())
    assert {kind for _, kind, _ in better} == {KINDS[2]}
    assert [f"{gain:.1f}" for key, gain in better.items() if key[0] == "eurosat"] == ["3.0", "2.7", "2.3"]
    said = f"DebiasPL has {overall('macro', 'DebiasPL')} by macro accuracy and FixMatch {overall('macro', 'FixMatch')}"
    assert said in page
    said = f"FixMatch has {overall('accuracy', 'FixMatch')} over all rows, DebiasPL {overall('accuracy', 'DebiasPL')}"
    assert said in page
    tail = [by_cell["eurosat", KINDS[1], labels] for labels in (5, 10, 20)]
    lost = [f"{-mean(behind(cell, 'accuracy', 'FixMatch')):.1f}" for cell in tail]
    assert f"DebiasPL is {lost[0]} (not significant), {lost[1]} and {lost[2]} points behind FixMatch" in page
    plain = {key: behind(cell, "accuracy", "FixMatch") for key, cell in by_cell.items()}
    worse = [key for key, differences in plain.items() if mean_interval(differences)[1] < 0]
    assert worse == [("eurosat", KINDS[1], 10), ("eurosat", KINDS[1], 20)]
    assert all(mean_interval(differences)[0] <= 0 for differences in plain.values())
    assert "By plain accuracy it is significantly better in none and worse in 2" in page
    both = [*plain.values(), *(behind(cell, "macro", "FixMatch") for cell in by_cell.values())]
    chances = [float(ttest_1samp(differences, 0).pvalue) for differences in both if any(differences)]
    assert min(chances) > 0.05 / len(by_cell)
    assert "none of them holds after a correction for 18 tests" in page
    lost = [f"{-mean(behind(cell, 'accuracy', 'self-training')):.1f}" for cell in tail[1:]]
    assert f"with 10 and 20 labels {lost[0]} and {lost[1]} behind self-training" in page
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"significantly better than FixMatch in {len(better)} of {len(by_cell)} settings" in readme
    assert f"In plain accuracy: better in none, [worse in {len(worse)}]" in readme

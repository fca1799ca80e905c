"""The matrix of algorithms by corrections: hand-made numbers in, the table and its notes out."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from debiaspl.cli.compare import _print_tables
from debiaspl.recipes import recipe
from debiaspl.report.comparison import Matrix
from debiaspl.training.monitor import true_counts
from debiaspl.training.tasks import task_of
from tests.report.stored import comparison_of, matrix_of

RESULTS = Path(__file__).parents[2] / "results"
REASON = "Supervised makes no pseudo-labels."


def runs(*accuracies: float, worst: float = 0.5, seconds: float = 10.0) -> list[dict[str, Any]]:
    return [{"accuracy": value, "worst_recall": worst, "timing": {"seconds": seconds}} for value in accuracies]


def matrix(*corrections: str) -> Matrix:
    results = {
        "supervised": {"none": runs(0.5, 0.7, worst=0.2, seconds=4), "own": runs(0.5, 0.7, worst=0.2, seconds=4)},
        "uda": {
            "none": runs(0.6, 0.8, worst=0.1),
            "own": runs(0.6, 0.8, worst=0.1),
            "alignment": runs(0.7, 0.7),
            "debiaser": runs(0.9, 0.75, worst=0.604, seconds=12),
        },
        "adamatch": {
            "none": runs(0.5, 0.5),
            "own": runs(0.8, 0.8, worst=0.7),
            "alignment": runs(0.8, 0.8, worst=0.7),
            "debiaser": runs(0.5, 0.4),
        },
    }
    refused = {"supervised": {"debiaser": REASON, "alignment": REASON}, "uda": {}, "adamatch": {}}
    return Matrix(
        [0, 1],
        {
            name: {correction: row[correction] for correction in corrections if correction in row}
            for name, row in results.items()
        },
        {name: {key: reason for key, reason in row.items() if key in corrections} for name, row in refused.items()},
        {"supervised": "none", "uda": "none", "adamatch": "alignment"},
        corrections,
    )


def test_a_row_for_each_pair_with_the_paired_difference_and_an_own_correction_is_not_shown_twice():
    rows = matrix("none", "own", "alignment", "debiaser").whole()
    assert rows[0] == ("algorithm", "correction", "accuracy %", "worst %", "- none (each seed)", "better on", "s a run")
    assert rows[1:5] == [
        ("supervised", "none", "60.0 ± 14.1", "20", "", "", "4"),
        ("supervised", "own", "= none", "", "", "", ""),
        ("supervised", "alignment", "-", "", "", "", ""),
        ("supervised", "debiaser", "-", "", "", "", ""),
    ]
    assert rows[8] == ("uda", "debiaser", "82.5 ± 10.6", "60", "+12.5 (+30.0, -5.0)", "1 of 2", "12")
    assert rows[10] == ("adamatch", "own", "= alignment", "", "", "", "")
    assert rows[11] == ("adamatch", "alignment", "80.0 ± 0.0", "70", "+30.0 (+30.0, +30.0)", "2 of 2", "10")
    assert matrix("none", "own").whole()[6] == (
        *("adamatch", "own", "80.0 ± 0.0", "70"),
        *("+30.0 (+30.0, +30.0)", "2 of 2", "10"),
    )


def test_without_the_baseline_nothing_is_subtracted():
    made = matrix("own", "debiaser")
    assert made.whole()[0] == ("algorithm", "correction", "accuracy %", "worst %", "s a run")
    assert made.to_json()["algorithms"]["uda"]["corrections"]["debiaser"]["difference"] is None


def test_all_numbers_are_in_the_json():
    written = json.loads(json.dumps(matrix("none", "own", "debiaser").to_json()))
    assert written["seeds"] == [0, 1]
    uda = written["algorithms"]["uda"]
    assert uda["own_correction"] == "none"
    cell = uda["corrections"]["debiaser"]
    assert cell["accuracy"]["per_seed"] == [0.9, 0.75]
    assert cell["difference"]["per_seed"] == pytest.approx([0.3, -0.05])
    assert cell["difference"]["better_on"] == 1
    assert cell["worst_recall"]["mean"] == 0.604
    assert cell["seconds"]["per_seed"] == [12, 12]
    assert written["algorithms"]["supervised"]["refused"] == {"debiaser": REASON}
    assert list(written["algorithms"]["supervised"]["corrections"]) == ["none", "own"]


def test_a_missing_run_is_no_refused_pair():
    with pytest.raises(ValueError, match="uda with debiaser has 1 results"):
        Matrix(
            [0, 1],
            {"uda": {"none": runs(0.5, 0.6), "debiaser": runs(0.5)}},
            {"uda": {}},
            {"uda": "none"},
            ["none", "debiaser"],
        )


@pytest.mark.parametrize("algorithm", ["uda", "mine.py:FallingThreshold", "my/own/algorithms/mine.py:FallingThreshold"])
@pytest.mark.parametrize("correction", ["debiaser", "debiaser+logit-adjustment+balanced-softmax"])
def test_no_number_is_cut_at_80_columns(algorithm, correction):
    names = "none", correction
    results = {"supervised": dict.fromkeys(names[:1], runs(0.5, 0.7)), algorithm: {}}
    results[algorithm] = {"none": runs(0.05, 0.95, worst=1.0), correction: runs(1.0, 0.4, seconds=12345)}
    refused = {"supervised": {correction: REASON}, algorithm: {}}
    made = Matrix([0, 1], results, refused, dict.fromkeys(results, "none"), names)
    console = Console(width=80, file=io.StringIO())
    _print_tables(made, console)
    shown = console.file.getvalue()
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    for row in made.whole()[1:]:
        assert all(cell in shown for cell in row[2:]), row
    assert all(name[:10] in shown and name[-2:] in shown for name in (algorithm, correction)), "over several lines"


@pytest.mark.parametrize(
    ("name", "cell"),
    [("demo", "digits-10"), ("demo-10-seeds", "digits-10"), ("demo-long-tail", "digits-lt20-10pct")],
)
def test_recorded_tables_of_the_demo_are_those_of_the_code(name, cell):
    folder = RESULTS / name
    values = json.loads((folder / "results.json").read_text())
    true = [true_counts(task_of(recipe(cell).changed(seed=seed)).unlabeled) for seed in values["seeds"]]
    assert comparison_of(values, true).to_markdown() == (folder / "table.md").read_text()


def test_the_recorded_matrix_is_that_of_the_code():
    folder = RESULTS / "digits-matrix"
    assert (
        matrix_of(json.loads((folder / "results.json").read_text())).to_markdown() == (folder / "table.md").read_text()
    )

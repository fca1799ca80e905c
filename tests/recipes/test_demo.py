"""The demo: what it prints, that it resumes to the same numbers, and that its figures can be trusted."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from debiaspl.cli.terminal import print_table
from debiaspl.recipes import demo as demo_module, recipe as recipe_of
from debiaspl.recipes.compare import plan
from debiaspl.recipes.comparison import Comparison
from debiaspl.recipes.demo import BALANCED, METHODS, demo
from debiaspl.training.monitor import true_counts
from debiaspl.training.settings import parse_settings
from debiaspl.training.tasks import task_of

RESULTS = Path(__file__).parents[2] / "results"
SMALL = ["steps=12", "width=4", "labeled_batch=8", "unlabeled_batch=16", "threshold=0.2", "checkpoint_every=4"]


@pytest.mark.slow
def test_a_demo_resumes_to_the_same_results(tmp_path, monkeypatch):
    """A matrix, which is trained in the same way, is killed and stopped by signals: test_compare.py."""
    monkeypatch.setattr(demo_module, "BALANCED", parse_settings(BALANCED, SMALL))
    whole = demo(tmp_path, seeds=range(1), workers=1)
    first = (tmp_path / "results.json").read_text()
    # As if stopped after the last step of one run, before its results.
    (tmp_path / "results.json").unlink()
    (tmp_path / "debiaspl-seed0" / "results.json").unlink()
    again = demo(tmp_path, seeds=range(1), workers=1, resume=True)
    assert again.to_json() == whole.to_json()
    assert without_timing((tmp_path / "results.json").read_text()) == without_timing(first)


def without_timing(text: str) -> dict[str, Any]:
    values = json.loads(text)
    del values["timing"]
    return values


@pytest.mark.parametrize("recipe", [BALANCED, recipe_of("digits-lt20-10pct")])
def test_the_methods_differ_in_nothing_but_the_method(recipe):
    jobs = plan(recipe, METHODS, range(3)).jobs(Path("out"))
    assert list(jobs) == ["supervised", "fixmatch", "debiaspl"], "the names of --method"
    plain = [
        {**job.recipe.to_json(), "name": "", "algorithm": "", "correction": ""}
        for runs in jobs.values()
        for job in runs
    ]
    for method in range(3):
        assert plain[3 * method : 3 * method + 3] == plain[:3]
    assert jobs["fixmatch"][0].recipe.algorithm == jobs["debiaspl"][0].recipe.algorithm
    assert jobs["fixmatch"][0].recipe.correction.name == "none"
    assert jobs["debiaspl"][0].recipe.correction.name == "debiaser"


def results(accuracy: float, worst: float, labels: list[int] | None = None) -> dict[str, Any]:
    pseudo = {"pseudo_labels": labels, "true_counts": [5, 5]} if labels else {}
    return {"accuracy": accuracy, "worst_recall": worst, **pseudo}


def test_the_table_shows_means_spread_and_paired_differences():
    runs = {
        "supervised": [results(0.5, 0.1), results(0.6, 0.3)],
        "FixMatch": [results(0.7, 0.2, [8, 0]), results(0.8, 0.4, [6, 2])],
        "DebiasPL": [results(0.9, 0.6, [4, 4]), results(0.75, 0.8, [5, 3])],
    }
    comparison = Comparison([0, 1], runs, "FixMatch")
    whole = comparison.whole()
    assert whole[0][-2:] == ("off true shares %", "almost none")
    assert whole[1:] == [
        ("supervised", "2", "55.0 ± 7.1", "-20.0 (-20.0, -20.0)", "-20.0", "0 of 2", "20", "-", "-"),
        ("FixMatch", "2", "75.0 ± 7.1", "", "", "", "30", "38", "0.5"),
        ("DebiasPL", "2", "82.5 ± 10.6", "+7.5 (+20.0, -5.0)", "-5.0", "1 of 2", "70", "6", "0.0"),
    ]
    header, rows = comparison.short()
    assert header == ("method", "accuracy %", "- FixMatch (each seed)", "worst class %", "off true shares %")
    assert rows[1] == ("FixMatch", "75.0 ± 7.1", "", "30", "38")
    assert comparison_of(comparison.to_json()).whole() == whole
    assert comparison.to_json()["methods"]["DebiasPL"]["accuracy"]["per_seed"] == [0.9, 0.75]


def comparison_of(values: Mapping[str, Any], true: Sequence[Sequence[int]] | None = None) -> Comparison:
    """What wrote this results.json; that of earlier versions has no true classes of the unlabeled images."""
    seeds = values["seeds"]
    known = true or values.get("true_counts") or [None] * len(seeds)

    def runs(numbers: Mapping[str, Any]) -> list[dict[str, Any]]:
        columns = numbers["accuracy"]["per_seed"], numbers["worst_recall"]["per_seed"], numbers["pseudo_labels"], known
        names = "accuracy", "worst_recall", "pseudo_labels", "true_counts"
        return [dict(zip(names, each, strict=True)) for each in zip(*columns, strict=True)]

    return Comparison(seeds, {name: runs(numbers) for name, numbers in values["methods"].items()}, values["baseline"])


@pytest.mark.parametrize(
    ("name", "cell"),
    [("demo", "digits-10"), ("demo-10-seeds", "digits-10"), ("demo-long-tail", "digits-lt20-10pct")],
)
def test_recorded_tables_are_those_of_the_code(name, cell):
    values = json.loads((RESULTS / name / "results.json").read_text())
    true = [true_counts(task_of(recipe_of(cell).changed(seed=seed)).unlabeled) for seed in values["seeds"]]
    assert comparison_of(values, true).to_markdown() == (RESULTS / name / "table.md").read_text()


def test_no_number_is_cut_at_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    name = "my/own/algorithms/mine.py:FallingThreshold+debiaser+logit-adjustment"
    made = Comparison([0, 1], {"supervised": [results(0.05, 1), results(0.95, 1)], name: [results(1, 1)] * 2}, name)
    header, rows = made.short()
    print_table(header, rows)
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert all(word in shown for row in rows for cell in row[1:] for word in cell.split())


def found(*differences: float) -> str:
    runs = {"FixMatch": [results(0.8, 0.2) for _ in differences]}
    runs["DebiasPL"] = [results(0.8 + difference, 0.2) for difference in differences]
    return Comparison(range(len(differences)), runs, "FixMatch").finding("DebiasPL")


def test_the_demo_says_in_words_what_was_found_whichever_way_it_turns_out():
    assert "better than FixMatch on 2 of 2 seeds: +6.0 points" in found(0.1, 0.02)
    assert "better than FixMatch on 1 of 3 seeds: +2.7 points" in found(0.1, -0.02, 0)
    assert "better than FixMatch on 0 of 2 seeds: +0.0 points" in found(0.0, 0.0)
    assert "+10.0 points on average; one seed is not enough" in found(0.1)


@pytest.mark.parametrize("count", [2, 5, 6, 9])
def test_fewer_than_six_seeds_are_shown_and_not_tested(count):
    """Neither an interval nor a p value: a sign-flip test of five cannot go below 0.06."""
    differences = [0.01 * (place + 1) for place in range(count)]
    said, few = found(*differences), count < 6
    assert ("p = " in said) == ("interval" in said) == (not few)
    assert ("+1.0, +2.0" in said) == few
    assert few or f"p = {2 / 2**count:.2g})" in said

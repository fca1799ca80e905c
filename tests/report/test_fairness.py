"""Runs side by side: what differs besides the method is told, and nothing else is."""

import json
from dataclasses import replace

import pytest

from debiaspl.recipes import RECIPES
from debiaspl.report.runs import read_run, runs_in, runs_values
from debiaspl.report.runs.methods import differences, methods_of
from debiaspl.training import Choice
from debiaspl.training.settings import parse_settings
from tests.typed import debiaspl

RECIPE = RECIPES["digits-10"]
RESULTS = {
    "accuracy": 0.5,
    "test": 4,
    "recall": [0.5, 0.5],
    "confusion": [[1, 1], [1, 1]],
    "labels": [1, 1],
    "unlabeled": 9,
    "evaluated": "the average",
}


def made(folder, *parts, **results):
    """A run that has ended, of a recipe with these settings."""
    folder.mkdir(parents=True)
    recipe = parse_settings(RECIPE, ["steps=90", *parts]).to_json()
    (folder / "config.json").write_text(json.dumps({"debiaspl": "0.1.0", "recipe": recipe}))
    (folder / "results.json").write_text(json.dumps(RESULTS | results))
    return folder


def told(*folders) -> list[str]:
    return differences(methods_of([read_run(folder) for folder in folders]))


@pytest.fixture
def fixmatch(tmp_path):
    return made(tmp_path / "fixmatch", "correction=none")


@pytest.mark.parametrize(
    ("parts", "results", "expected"),
    [
        (["steps=30"], {}, [("steps", "90", "30")]),
        (["data=eurosat"], {}, [("data", "digits", "eurosat")]),
        (
            ["per_class=4"],
            {"labels": [4, 4]},
            [("protocol.per_class", "1", "4"), ("labels of each class", "1, 1", "4, 4")],
        ),
        # Of the other run the default, which its recipe does not spell out.
        (["labeled_also_unlabeled=false"], {}, [("protocol.labeled_also_unlabeled", "true", "false")]),
        (["seed=3"], {}, [("seeds", "0", "3")]),
        ([], {"test": 5}, [("measured on", "4 test images", "5 test images")]),
        ([], {"check": {"kind": "none"}}, [("measured on", "4 test images", "4 labels it was trained with")]),
        (["learning_rate=0.5", "flip=true"], {}, [("flip", "false", "true"), ("learning_rate", "0.2", "0.5")]),
    ],
)
def test_what_differs_is_told_with_its_methods(tmp_path, fixmatch, parts, results, expected):
    lines = told(fixmatch, made(tmp_path / "debiaspl", *parts, **results))
    assert lines == [f"{what}: {one} (fixmatch) against {other} (debiaspl)" for what, one, other in expected]


@pytest.mark.parametrize(
    "parts",
    [
        [],
        ["strength=1", "momentum=0.9", "threshold=0.7"],
        ["algorithm=supervised", "correction=none", "unlabeled_batch=7", "strong=benchmark"],
        ["log_every=3", "evaluate_every=5"],
    ],
)
def test_nothing_is_said_of_what_is_compared(tmp_path, fixmatch, parts):
    assert told(fixmatch, made(tmp_path / "other", *parts)) == []


def test_nothing_is_said_of_one_run_of_real_ones_and_of_defaults_that_are_spelt_out(tmp_path, runs, fixmatch):
    assert told(fixmatch) == []
    assert told(*runs_in(runs)) == []
    default = RECIPE.protocol.settings | {"labeled_also_unlabeled": True}
    folder = made(tmp_path / "spelt")
    recipe = replace(RECIPE, steps=90, protocol=Choice("few-labels", default)).to_json()
    (folder / "config.json").write_text(json.dumps({"debiaspl": "0.1.0", "recipe": recipe}))
    assert told(fixmatch, folder) == []


def test_seeds_that_only_one_method_has_and_seeds_that_stand_twice(tmp_path, fixmatch):
    both = [made(tmp_path / str(seed), f"seed={seed}") for seed in (0, 1)]
    assert told(fixmatch, *both) == ["seeds: 0 (fixmatch) against 0, 1 (debiaspl)"]
    (both[1] / "results.json").unlink()  # not measured yet, so not compared
    assert told(fixmatch, *both) == []
    assert "seeds: 0 (fixmatch) against 0, 0 (debiaspl)" in told(fixmatch, both[0], both[0])
    assert told(both[0], both[0]) == ["a seed occurs twice (debiaspl)"]  # its spread would be that of one run


def test_a_folder_is_the_same_however_its_path_is_written(tmp_path, fixmatch, monkeypatch):
    monkeypatch.chdir(tmp_path)
    near = made(tmp_path / "near", "data=./photos/", "correction=none")
    far = made(tmp_path / "far", f"data={tmp_path / 'photos'}")
    assert told(near, far) == []
    assert told(far, near, fixmatch) == [
        f"data: {tmp_path / 'photos'} (fixmatch, data ./photos/; debiaspl) against digits (fixmatch, data digits)"
    ]
    for other, same in ((far, True), (fixmatch, False)):
        assert runs_values([read_run(near), read_run(other)])["same_data"] is same


def test_it_is_told_by_the_command_and_the_findings(tmp_path, fixmatch):
    short = made(tmp_path / "short", "steps=30")
    values = runs_values([read_run(fixmatch), read_run(short)])
    first, accuracy = values["findings"][:2]
    assert first["fact"] == ("These runs differ in more than the method: steps: 90 (fixmatch) against 30 (debiaspl).")
    assert "not from the method" in accuracy["todo"]
    said = debiaspl("report", fixmatch, short, "--out", tmp_path / "page.html")
    assert said.exit_code == 0, said.output
    assert said.stdout == f"The report is {tmp_path / 'page.html'}\n"
    assert said.stderr.splitlines() == [
        "warning: these runs differ in more than the method:",
        "  steps: 90 (fixmatch) against 30 (debiaspl)",
    ]
    fair = debiaspl("report", fixmatch, "--out", tmp_path / "fair.html")
    assert fair.stderr == ""

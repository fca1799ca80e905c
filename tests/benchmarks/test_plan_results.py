"""Result files made of a plan's runs: settings as they counted, seconds with the start's, folds of one method alone."""

import json

import pytest

from benchmarks import plan_results
from debiaspl.recipes import RECIPES
from debiaspl.recipes.results import checked

NAME = "cifar10-40-start"


def run(seed: int, accuracy: float, seconds: float, *more: str, start: str = "/tmp/runs/pre", ended: bool = True):
    """As benchmarks.plan collects it."""
    chosen = [f"start={start}", "steps=6000", "seed=100", *more, "steps=20000", f"seed={seed}"]
    recipe = RECIPES[NAME].with_settings([f"start={start}", f"seed={seed}", *more]).to_json()
    timing = {"seconds": seconds - 5, "device": "a GPU"}
    versions = {"debiaspl": "1", "torch": "2"}
    results = {"accuracy": accuracy, "recall": [accuracy], "timing": timing, "versions": versions}
    return {
        "command": f"debiaspl train --recipe {NAME} " + " ".join(f"--set {one}" for one in chosen),
        "recipe": recipe,
        "results": results if ended else None,
        "process_seconds": seconds,
        "log": [{"step": 500, "kept": 0.5, "seconds": 3.0, "prior": [1.0]}],
    }


def start(seconds: float, seed: int = 0):
    """A run that others begin with."""
    name = RECIPES[NAME].start.removeprefix("runs/")
    begun = run(seed, 0.5, seconds)
    return begun | {"command": f"debiaspl train --recipe {name} --set seed={seed}", "recipe": RECIPES[name].to_json()}


def made(tmp_path, monkeypatch, runs, *typed):
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    out = tmp_path / "made.json"
    typed = str(tmp_path / "runs.json"), *typed, "--commit", "abc", "--out", str(out)
    monkeypatch.setattr("sys.argv", ["plan_results", *typed])
    plan_results.main()
    return json.loads(out.read_text())


def test_folds_are_a_file_that_results_can_read(tmp_path, monkeypatch):
    runs = {"a-1": run(1, 0.9, 60.0), "a-0": run(0, 0.8, 50.0), "a-2": run(2, 0, 0, ended=False), "pre": start(200)}
    found = made(tmp_path, monkeypatch, runs, "folds", "a-", "--start", "pre", "--together", "3")
    checked(found)
    assert [(fold["fold"], fold["accuracy"], fold["seconds"]) for fold in found["folds"]] == [
        (0, 0.8, 250),
        (1, 0.9, 260),
    ]
    # What a later setting of the same name replaces never counted.
    assert found["command"] == f"debiaspl train --recipe {NAME} --set steps=20000 --set seed=0"
    assert found["recipe"]["start"] == RECIPES[NAME].start, "as the command of the start writes it"
    assert found["together"] == 3


def test_a_start_of_each_fold_is_counted_with_its_fold(tmp_path, monkeypatch):
    runs = {f"a-{seed}": run(seed, 0.8, 50.0, start=f"/tmp/runs/pre-{seed}") for seed in (0, 1)}
    runs |= {"pre-0": start(100.0), "pre-1": start(300.0, 1), "pre-100": start(5000.0, 100)}
    found = made(tmp_path, monkeypatch, runs, "folds", "a-", "--start", "pre-{seed}")
    assert [fold["seconds"] for fold in found["folds"]] == [150, 350]
    assert found["start_command"] == "debiaspl train --recipe cifar10-pretrain --set seed=0"


def test_folds_are_filed_under_another_recipe_only_if_its_command_repeats_them(tmp_path, monkeypatch):
    other = "cifar10-40-start-fixmatch"
    runs = {"a-0": run(0, 0.8, 50.0, "correction=none"), "pre": start(200)}
    typed = "folds", "a-", "--start", "pre", "--recipe", other
    found = made(tmp_path, monkeypatch, runs, *typed)
    assert found["recipe"]["name"] == other
    assert found["command"].startswith(f"debiaspl train --recipe {other} --set ")
    with pytest.raises(SystemExit, match=r"is not what was run, in learning_rate"):
        made(tmp_path, monkeypatch, runs, *typed, "--set", "learning_rate=0.5")
    runs["a-0"] = run(0, 0.8, 50.0)
    with pytest.raises(SystemExit, match=r"is not what was run, in correction"):
        made(tmp_path, monkeypatch, runs, *typed)


def test_runs_of_different_settings_are_no_folds(tmp_path, monkeypatch):
    runs = {"a-0": run(0, 0.8, 50.0), "a-1": run(1, 0.9, 50.0, "learning_rate=0.1")}
    with pytest.raises(SystemExit, match=r"not folds of one method(.|\n)*learning_rate=0.1"):
        made(tmp_path, monkeypatch, runs, "folds", "a-")


def test_a_search_keeps_what_ended(tmp_path, monkeypatch):
    runs = {"s-0": run(100, 0.8, 50.0), "s-1": run(100, 0, 0, ended=False), "t": run(1, 0.5, 1.0)}
    found = made(tmp_path, monkeypatch, runs, "search", "s-", "--about", "which is best")
    assert list(found["runs"]) == ["s-0"]
    assert found["about"] == "which is best"
    assert found["runs"]["s-0"]["log"] == [{"step": 500, "kept": 0.5}]
    with pytest.raises(SystemExit, match="begins with x has ended"):
        made(tmp_path, monkeypatch, runs, "search", "x", "--about", "none")

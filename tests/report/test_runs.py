"""The report of runs: what is read from their folders, put together, and told."""

import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from debiaspl.files import FileError
from debiaspl.recipes import RECIPES, recipe as make_recipe
from debiaspl.report.runs import read_run, runs_in, runs_page, runs_values, write_report
from debiaspl.report.runs.methods import command_of, methods_of
from debiaspl.report.runs.page import curves, stripes, windows
from debiaspl.training import Choice, RunError
from debiaspl.training.settings import parse_settings


def line(step: int, labels: list[int], **more: Any) -> dict[str, Any]:
    known = sum(labels)
    record = {"step": step, "losses": {"labeled": 1 / step}, "kept": 0.5, "pseudo_labels": labels, "seconds": step / 10}
    return record | {"pseudo_known": known, "pseudo_right": known // 2, "pseudo_accuracy": None} | more


def begun(folder: Path, log: list[dict[str, Any]] | None = None, **settings: Any) -> Path:
    """A run that has not ended."""
    folder.mkdir(parents=True)
    recipe = replace(RECIPES["digits-10"], steps=90, **settings)
    (folder / "config.json").write_text(json.dumps({"debiaspl": "0.1.0", "recipe": recipe.to_json()}))
    if log is not None:
        (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in log))
    return folder


def start_without_labels(folder: Path) -> Path:
    """A run that has learned features, of images without labels, and has ended."""
    log = [{"step": step, "losses": {"contrast": 5 / step}, "seconds": step / 10} for step in range(10, 100, 10)]
    begun(folder, log, algorithm=Choice("moco"), correction=Choice("none"), protocol=Choice("no-labels"))
    results = {"evaluated": "nothing", "labels": [], "unlabeled": 60, "test": 0}
    (folder / "results.json").write_text(json.dumps(results))
    return folder


LOG = [line(step, [step, 0, 10]) for step in range(10, 100, 10)]


def test_curves_are_sums_and_means_of_the_lines():
    lines = curves(LOG)
    assert lines["step"] == list(range(10, 100, 10))
    assert lines["kept"] == [0.5] * 9
    assert lines["losses"]["labeled"] == pytest.approx([1 / step for step in range(10, 100, 10)], rel=1e-5)
    assert curves([{**LOG[0], "pseudo_distance": 0.25, "distance": 0.5}])["pseudo_distance"] == [0.25]
    assert lines["pseudo_accuracy"][0] == 0.5


def test_a_long_log_is_put_together_without_losing_a_label():
    log = [line(step, [3, 1]) for step in range(1, 1002)]
    parts = windows(log, 200)
    assert len(parts) <= 200
    assert [record for part in parts for record in part] == log
    found = stripes(log, 2, "pseudo_labels")
    assert found is not None
    assert len(found["step"]) <= 120
    assert found["times_even"][0] == [1.5, 0.5]
    wide = [line(step, [1] * 1000) for step in range(1, 101)]
    many = stripes(wide, 1000, "pseudo_labels")
    assert many is not None
    assert sum(map(len, many["times_even"])) <= 13_000


def test_the_prior_is_shown_and_the_mean_prediction_where_there_is_none():
    prior = stripes([line(1, [1, 1], prior=[0.25, 0.75], marginal=[0.5, 0.5])], 2, "prior")
    mean = stripes([line(1, [1, 1], marginal=[0.4, 0.6])], 2, "prior")
    assert prior == {"step": [1], "times_even": [[0.5, 1.5]]}
    assert mean == {"step": [1], "times_even": [[0.8, 1.2]]}
    assert stripes([line(1, [0, 0])], 2, "pseudo_labels") is None


def test_methods_of_one_name_are_told_apart_by_what_differs(tmp_path):
    parts = {s: Choice("debiaser", {"strength": s}) for s in (0.25, 0.75)}
    runs = [read_run(begun(tmp_path / str(s), about=f"with {s}", correction=part)) for s, part in parts.items()]
    assert [method.title for method in methods_of(runs)] == ["debiaspl, strength 0.25", "debiaspl, strength 0.75"]
    assert runs_values(runs)["about"] == "", "what is said of one run is not of all"


def test_the_page_holds_the_numbers_of_the_results(runs):
    values = runs_values([read_run(folder) for folder in runs_in(runs)])
    assert [method["title"] for method in values["methods"]] == ["supervised", "fixmatch", "debiaspl"]
    assert values["classes"] == [str(digit) for digit in range(10)]
    for run in values["runs"]:
        results = json.loads((runs / run["name"] / "results.json").read_text())
        assert run["accuracy"] == results["accuracy"]
        assert run["interval"][0] < results["accuracy"] < run["interval"][1]
        assert [step for step, _ in run["curves"]["measured"]] == [6, 12]
    for method, name in zip(values["methods"], ("supervised", "fixmatch", "debiaspl"), strict=True):
        both = [json.loads((runs / f"{name}-seed{seed}" / "results.json").read_text()) for seed in (0, 1)]
        accuracy = [one["accuracy"] for one in both]
        assert (method["accuracy"]["mean"], method["accuracy"]["deviation"]) == (fmean(accuracy), stdev(accuracy))
        difference = method["to_supervised"] or {"mean": 0}
        assert difference["mean"] == pytest.approx(fmean(accuracy) - values["methods"][0]["accuracy"]["mean"])
        assert method["worst_recall"] == fmean(one["worst_recall"] for one in both)
        recalls = [fmean(pair) for pair in zip(*(one["recall"] for one in both), strict=True)]
        assert method["recall"] == pytest.approx(recalls, rel=1e-5)
        off = [one["pseudo_distance"] for one in both if "pseudo_distance" in one]
        assert (method["off"] or {}).get("distance") == (fmean(off) if off else None)
        assert (method["off"] or {}).get("reference") == ("true shares" if off else None)
    for drawn, name in zip(values["confusions"], ("supervised", "fixmatch", "debiaspl"), strict=True):
        both = [json.loads((runs / f"{name}-seed{seed}" / "results.json").read_text())["confusion"] for seed in (0, 1)]
        expected = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(*both, strict=True)]
        found = [dict(zip(row[::2], row[1::2], strict=True)) for row in drawn["matrix"]["rows"]]
        assert [[found[t].get(p, 0) for p in range(10)] for t in range(10)] == expected
    assert sorted(values["order"]) == list(range(10))
    assert {name for name, *_ in values["settings"]["different"]} >= {"algorithm", "correction"}
    assert values["findings"][0]["fact"].count("%") == 1
    json.dumps(values, allow_nan=False)


def test_the_command_of_a_run_gives_its_recipe(runs):
    for folder in runs_in(runs):
        recipe = read_run(folder).recipe
        command = command_of(recipe)
        assert command is not None
        words = command.split()
        method = words.pop(5) if "--method" in words else None
        assert [word for word in words[:5] if word != "--method"][:4] == ["debiaspl", "train", "--recipe", "digits-10"]
        again = parse_settings(make_recipe("digits-10", method=method), [word for word in words if "=" in word])
        assert replace(again, name="", about="") == replace(recipe, name="", about="")
    assert command_of(RECIPES["digits-10"]) == "debiaspl train --recipe digits-10"
    assert command_of(replace(RECIPES["digits-10"], name="mine")) is None


def test_a_run_that_has_not_ended_is_shown_as_far_as_it_is(tmp_path):
    folder = begun(tmp_path / "run", LOG[:4])
    with (folder / "log.jsonl").open("a") as log:
        log.write('{"step": 50, "los')  # a line that is being written
    values = runs_values([read_run(folder)])
    assert values["runs"][0]["step"] == 40
    assert values["runs"][0]["ended"] is False
    assert values["classes"] == ["class 0", "class 1", "class 2"]
    assert values["findings"] == []
    assert values["confusions"] == []
    empty = begun(tmp_path / "empty")
    assert runs_values([read_run(empty)])["runs"][0]["step"] == 0
    assert "<html" in runs_page([read_run(empty)])


def test_a_start_without_labels_is_told_as_such_alone_and_beside_runs(runs, tmp_path):
    start = read_run(start_without_labels(tmp_path / "start"))
    values = runs_values([start])
    (finding,) = values["findings"]
    assert finding["fact"].startswith("start has learned features of 60 images without labels. It has no classifier")
    assert f"--set start={tmp_path / 'start'}" in finding["todo"]
    assert (values["runs"][0]["accuracy"], values["runs"][0]["interval"]) == (None, None)
    assert values["methods"][0]["unmeasured"]
    run = read_run(runs / "debiaspl-seed0")
    both = runs_values([start, run])
    assert len(both["classes"]) == run.num_classes()
    assert [method["accuracy"] is None for method in both["methods"]] == [
        method["unmeasured"] for method in both["methods"]
    ]
    assert sum(method["unmeasured"] for method in both["methods"]) == 1


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not a run of debiaspl and holds no runs"):
        runs_in(tmp_path)
    with pytest.raises(RunError, match=r"it has no config\.json"):
        read_run(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(RunError, match=r"config\.json is damaged"):
        read_run(tmp_path)
    three = begun(tmp_path / "three", [line(1, [1, 1, 1])])
    two = begun(tmp_path / "two", [line(1, [1, 1])])
    with pytest.raises(RunError, match="have 2 and 3 classes, expected as many in each"):
        runs_values([read_run(three), read_run(two)])


GOOD = line(1, [1, 1])
DAMAGED = [
    ("results.json", "{"),
    ("results.json", "[]"),
    ("results.json", '{"accuracy": "good"}'),
    ("results.json", '{"accuracy": 1, "test": 0}'),
    ("results.json", '{"accuracy": 1, "test": 5, "recall": [1, 1], "confusion": [[1, 2], [3]]}'),
    ("log.jsonl", "[]"),
    ("log.jsonl", '{"step": 1}'),
    ("log.jsonl", json.dumps(GOOD) + "\n" + json.dumps(line(2, [1]))),
    *(("log.jsonl", json.dumps(GOOD | bad)) for bad in ({"prior": 3}, {"health": {"rank": "high"}}, {"warning": "w"})),
    # Found by the fuzzers: lists that are empty, shares that are none, an accuracy without labels.
    *(
        ("log.jsonl", json.dumps(GOOD | bad))
        for bad in ({"pseudo_labels": []}, {"prior": [1e308]}, {"marginal": [-1.0]})
    ),
    *(("results.json", json.dumps({"labels": [], "test": 5} | bad)) for bad in ({"accuracy": 1}, {"test": [1]})),
    ("results.json", json.dumps({"labels": [], "test": 5, "unlabeled": None})),
    ("config.json", {"steps": "many"}),
    ("config.json", {"about": None}),
    ("config.json", {"correction": {"name": "none"}}),
]


@pytest.mark.parametrize(("name", "content"), DAMAGED)
def test_damaged_files_are_refused_by_their_name(tmp_path, name, content):
    folder = begun(tmp_path / "run")
    if isinstance(content, dict):
        config = json.loads((folder / name).read_text())
        content = json.dumps({"recipe": config["recipe"] | content})
    (folder / name).write_text(f"{content}\n")
    with pytest.raises(RunError, match=rf"{re.escape(name)} is damaged"):
        runs_values([read_run(folder)])


def test_a_report_is_written_whole_or_not_at_all(runs, tmp_path):
    page = write_report([runs / "debiaspl-seed0"], tmp_path / "new" / "report.html")
    assert page.read_text().startswith("<!doctype html>")
    assert [path.name for path in page.parent.iterdir()] == ["report.html"]
    with pytest.raises(FileError, match="could not write"):
        write_report([runs / "debiaspl-seed0"], tmp_path / "new")

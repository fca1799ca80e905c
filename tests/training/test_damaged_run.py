"""Files of a run that are not what a run writes."""

import json

import pytest

from debiaspl.report.runs import read_run
from debiaspl.training import Run, RunError, train
from tests.training.tiny import TINY, outcome

DEEP = "[" * 100_000


@pytest.mark.parametrize("text", ["{}", "[]", "7", "", '{"accuracy": "high"}', DEEP])
def test_damaged_results_are_named_and_measured_again(tmp_path, text):
    train(TINY, tmp_path / "run")
    before = outcome(tmp_path / "run")
    (tmp_path / "run" / "results.json").write_text(text)
    with pytest.raises(RunError, match=r"results\.json is damaged.* Remove it, and run again with --resume"):
        train(TINY, tmp_path / "run", resume=True)
    (tmp_path / "run" / "results.json").unlink()
    train(TINY, tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == before


@pytest.mark.parametrize("name", ["config.json", "log.jsonl", "results.json"])
def test_deep_json_is_refused_by_the_report(tmp_path, name):
    train(TINY, tmp_path / "run")
    (tmp_path / "run" / name).write_text(DEEP + "\n")
    with pytest.raises(RunError, match=f"{name} is damaged"):
        read_run(tmp_path / "run")


@pytest.mark.parametrize("value", [DEEP, json.dumps({"recipe": {"steps": {}}}), json.dumps({"recipe": [1]}), "{}"])
def test_a_damaged_config_is_refused(tmp_path, value):
    train(TINY, tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text(value)
    with pytest.raises(RunError, match=r"config\.json is damaged"):
        Run(tmp_path / "run").recipe()


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999"])
def test_a_config_with_numbers_that_no_page_can_hold_is_refused(tmp_path, value):
    text = json.dumps({"recipe": TINY.to_json() | {"learning_rate": "HERE"}}).replace('"HERE"', value)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(RunError, match=r"config\.json is damaged.*a number of its recipe is not finite"):
        read_run(tmp_path)


LINE = {"step": 5, "losses": {"labeled": 0.5}, "seconds": 1.0}


@pytest.mark.parametrize(
    "values",
    [
        {"kept": [1]},
        {"pseudo_labels": None},
        {"pseudo_labels": [[1], 2]},
        {"pseudo_labels": [0.5, 1]},
        {"pseudo_labels": [2**70, 1]},
        {"pseudo_known": "many"},
        {"prior": [float("nan"), 1]},
        {"losses": {"labeled": float("inf")}},
    ],
)
def test_a_log_with_other_values_is_refused_by_the_report(tmp_path, values):
    (tmp_path / "config.json").write_text(json.dumps({"recipe": TINY.to_json()}))
    (tmp_path / "log.jsonl").write_text(json.dumps(LINE) + "\n" + json.dumps(LINE | values) + "\n")
    with pytest.raises(RunError, match=r"log\.jsonl is damaged.*line 2"):
        read_run(tmp_path)


@pytest.mark.parametrize("values", [{"accuracy": float("nan")}, {"accuracy": 2}, {"test": 2**70}, {"unlabeled": "x"}])
def test_results_with_other_values_are_refused_by_the_report(tmp_path, values):
    train(TINY, tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    (tmp_path / "results.json").write_text(json.dumps(results | values))
    with pytest.raises(RunError, match=rf"results\.json is damaged.*{next(iter(values))}"):
        read_run(tmp_path)


def test_results_with_numbers_that_no_page_can_hold_are_refused(tmp_path):
    train(TINY, tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    (tmp_path / "results.json").write_text(json.dumps(results | {"timing": float("nan")}))
    with pytest.raises(RunError, match=r"results\.json is damaged.*a number of it is not finite"):
        read_run(tmp_path)

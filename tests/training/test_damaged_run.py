"""Files of a run that are not what a run writes; tests/report has those that a report refuses."""

import json

import pytest

from debiaspl.training import Run, RunError, train
from tests.training.tiny import TINY, outcome

DEEP = "[" * 100_000


def test_damaged_results_are_named_and_measured_again(tmp_path):
    train(TINY, tmp_path / "run")
    before = outcome(tmp_path / "run")
    for text in ("{}", "[]", "", '{"accuracy": "high"}', DEEP):
        (tmp_path / "run" / "results.json").write_text(text)
        with pytest.raises(RunError, match="results"):
            train(TINY, tmp_path / "run", resume=True)
    (tmp_path / "run" / "results.json").unlink()
    train(TINY, tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == before


@pytest.mark.parametrize("value", ["{", DEEP, json.dumps({"recipe": {"steps": {}}}), json.dumps({"recipe": [1]}), "{}"])
def test_a_damaged_config_is_named(tmp_path, value):
    (tmp_path / "config.json").write_text(value)
    with pytest.raises(RunError, match="config"):
        Run(tmp_path).recipe()

"""A log that is not what the run has written: the run says so, and ends."""

import os
from pathlib import Path

import pytest

from debiaspl.files import FileError
from debiaspl.training import Run, RunError, train
from debiaspl.training.evaluate import PSEUDO
from tests.training.tiny import EAGER, changed, outcome, results

RECIPE = changed(EAGER, "log_every=2")


@pytest.fixture
def stopped(tmp_path) -> Path:
    """A run that was killed between its last checkpoint and its results."""
    train(RECIPE, tmp_path / "run")
    (tmp_path / "run" / "results.json").unlink()
    (tmp_path / "run" / "checkpoint" / "step-000000012.safetensors").unlink()
    return tmp_path / "run"


def cut(path: Path, lines: int, more: str = "") -> None:
    kept = path.read_text().splitlines(keepends=True)[:lines]
    path.write_text("".join(kept) + more)


def test_a_log_shorter_than_its_checkpoint_says_is_named_and_the_run_ends(stopped, caplog):
    cut(stopped / "log.jsonl", 1, '{"step": 4, "los')
    train(RECIPE, stopped, resume=True)
    assert str(stopped / "log.jsonl") in caplog.text
    assert [record["step"] for record in Run(stopped).log()] == [2, 10, 12]
    assert results(stopped)["missing"] == {"log.jsonl": [4, 6, 8], "results.json": list(PSEUDO)}
    assert "pseudo_labels" not in results(stopped)


def test_what_is_missing_from_the_first_half_alone_changes_no_number(stopped, tmp_path):
    train(RECIPE, tmp_path / "whole")
    text = (stopped / "log.jsonl").read_text().splitlines(keepends=True)
    (stopped / "log.jsonl").write_text("".join(text[1:4]))
    train(RECIPE, stopped, resume=True)
    found = results(stopped)
    assert found.pop("missing") == {"log.jsonl": [2]}
    assert found == outcome(tmp_path / "whole")[1]


@pytest.mark.parametrize("line", ["{", "[1]", '{"step": "2"}', '{"losses": {}}', "[" * 100_000])
def test_a_damaged_line_is_named(stopped, line):
    lines = (stopped / "log.jsonl").read_text().splitlines()
    (stopped / "log.jsonl").write_text("\n".join([lines[0], line, *lines[1:]]) + "\n")
    with pytest.raises(RunError, match="line 2"):
        Run(stopped).log()


@pytest.mark.parametrize("kind", ["symlink", "hardlink", "pipe"])
def test_a_log_that_is_no_file_of_its_own_is_refused(stopped, tmp_path, kind):
    """Whoever resumes somebody else's run must not cut a file of their own."""
    log, victim = stopped / "log.jsonl", tmp_path / "diary"
    victim.write_text("mine")
    log.unlink()
    if kind == "pipe":
        os.mkfifo(log)
    else:
        (os.symlink if kind == "symlink" else os.link)(victim, log)
    with pytest.raises(FileError, match="link"):
        train(RECIPE, stopped, resume=True)
    assert victim.read_text() == "mine"

"""The files of a run: what they hold, damaged ones, and records of the log as they are written."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.data.tensor_file import tensor_file
from debiaspl.files import FileError
from debiaspl.training import Run, RunError, train
from debiaspl.training.log import numbers
from debiaspl.training.run import Checkpoint, newest_checkpoint, read_checkpoint, save_checkpoint
from tests.training.tiny import EAGER, TINY, changed, outcome, train_until

TENSORS = {"weights": torch.arange(6.0), "seen": torch.tensor(3)}
FACTS = {"log_length": 100, "seconds": 1.5, "recipe": {"steps": 60}}


@pytest.fixture
def saved(tmp_path) -> Path:
    return save_checkpoint(tmp_path, Checkpoint(50, TENSORS, FACTS))


def write(path: Path, header: object) -> None:
    path.write_bytes(tensor_file(TENSORS, "debiaspl", json.dumps(header)))


def test_what_was_saved_is_read(saved):
    found = read_checkpoint(saved)
    assert (found.step, dict(found.facts)) == (50, FACTS)
    assert {name: value.tolist() for name, value in found.tensors.items()} == {"weights": [*range(6)], "seen": 3}


def test_a_checkpoint_renamed_to_another_step_is_refused(tmp_path, saved):
    saved.rename(tmp_path / "step-000000060.safetensors")
    with pytest.raises(RunError, match="step 50"):
        newest_checkpoint(tmp_path)


@pytest.mark.parametrize("step", [-4, 50.0, "50", True])
def test_a_step_that_is_no_number_of_steps_is_refused(tmp_path, step):
    write(tmp_path / "step-000000050.safetensors", {"format": 2, "step": step, "facts": FACTS})
    with pytest.raises(RunError, match="step"):
        read_checkpoint(tmp_path / "step-000000050.safetensors")


@pytest.mark.parametrize("fact", ["log_length", "recipe"])
def test_a_checkpoint_that_is_not_of_a_run_is_refused(tmp_path, fact):
    train(TINY, tmp_path)
    found = newest_checkpoint(tmp_path / "checkpoint")
    facts = {name: value for name, value in found.facts.items() if name != fact}
    for changed_facts in (facts, {**found.facts, "recipe": []}):
        save_checkpoint(tmp_path / "checkpoint", Checkpoint(12, found.tensors, changed_facts))
        with pytest.raises(RunError, match="has no"):
            Run(tmp_path).checkpoint()


def test_the_same_content_is_the_same_bytes(tmp_path):
    written = {save_checkpoint(tmp_path / str(number), Checkpoint(50, TENSORS, FACTS)) for number in range(8)}
    assert len({path.read_bytes() for path in written}) == 1


@pytest.mark.parametrize(
    "header", ["[]", "{}", '{"format": 2}', "[" * 100_000, '{"format": 3, "step": 50, "facts": {}}', None]
)
def test_another_header_is_refused(tmp_path, header):
    """The last one has only lost its digest."""
    path = tmp_path / "step-000000050.safetensors"
    whole = json.dumps({"format": 2, "step": 50, "facts": FACTS})
    path.write_bytes(save(TENSORS, metadata={"debiaspl": header or whole}))
    with pytest.raises(RunError, match="damaged"):
        read_checkpoint(path)


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


def test_a_function_is_called_with_every_record(tmp_path):
    records = []
    train(TINY, tmp_path / "run", on_log=records.append)
    assert records == Run(tmp_path / "run").log() != []


def test_numbers_of_a_record():
    record = {"step": 3, "losses": {"labeled": 1.5}, "prior": [0.2, 0.8], "skipped": {"a.jpg": "empty"}, "seconds": 2}
    expected = {"losses/labeled": 1.5, "prior/0": 0.2, "prior/1": 0.8, "seconds": 2}
    assert numbers(record) == expected


class Writer:
    """Stands in for torch.utils.tensorboard.SummaryWriter."""

    made: list["Writer"] = []  # noqa: RUF012

    def __init__(self, folder, purge_step):
        self.folder, self.purge_step, self.events = folder, purge_step, []
        Writer.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def flush(self):
        pass

    def add_scalar(self, name, value, step):
        self.events.append((step, name, value))


def test_event_files_have_the_numbers_of_the_log_and_go_on_when_resumed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer))
    train_until(6, TINY, tmp_path / "run", tensorboard=True)
    train(TINY, tmp_path / "run", tensorboard=True, resume=True)
    first, second = Writer.made
    assert (first.folder, first.purge_step) == (str(tmp_path / "run"), 1)
    events = [event for event in first.events if event[0] < second.purge_step] + second.events
    expected = [
        (one["step"], name, value) for one in Run(tmp_path / "run").log() for name, value in numbers(one).items()
    ]
    assert [event[:2] for event in events] == [event[:2] for event in expected]
    assert [one for one in events if one[1] != "seconds"] == [one for one in expected if one[1] != "seconds"]


def test_without_tensorboard_the_extra_is_named_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match=r"debiaspl\[tensorboard\]"):
        train(TINY, tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()


def test_a_frozen_encoder_has_no_log_for_tensorboard(tmp_path):
    frozen = ["--set", "network=encoder", "--set", "frozen=true", "--tensorboard"]
    ran = CliRunner().invoke(app, ["train", "--recipe", "digits-10", *frozen, "--out", str(tmp_path / "run")])
    assert ran.exit_code == 1
    assert "--tensorboard" in ran.stderr
    assert not (tmp_path / "run").exists()

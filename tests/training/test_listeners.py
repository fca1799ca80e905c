"""Records of the log are handed to the caller and to TensorBoard as they are written."""

import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.training import Run, train
from debiaspl.training.log import numbers
from tests.training.tiny import TINY, train_until


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

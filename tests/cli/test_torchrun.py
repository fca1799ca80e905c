"""What a user reads under torchrun, which ends in a traceback of its own: the last lines say what was wrong."""

import json
import os
import subprocess
import sys

import pytest
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from debiaspl.cli.terminal import plain_errors, tell

SAID = "error on rank 1: debiaspl demo runs in one process. Start it without torchrun."


@pytest.mark.slow
def test_the_list_of_torchrun_says_what_was_wrong(tmp_path):
    told = tmp_path / "error.json"
    environment = {**os.environ, "RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_ERROR_FILE": str(told)}
    ran = subprocess.run([sys.executable, "-m", "debiaspl", "demo"], env=environment, text=True, capture_output=True)
    assert (ran.returncode, ran.stderr) == (1, f"{SAID}\n")
    assert list(tmp_path.iterdir()) == [told]
    failed = ChildFailedError("debiaspl", {1: ProcessFailure(1, 7, 1, str(told))})
    assert str(failed).splitlines()[-2] == f"  traceback : {SAID}"


def test_a_file_that_cannot_be_reached_is_told_and_ends_at_once_too(tmp_path, monkeypatch, capsys):
    """Python would end NCCL first, which waits for the other ranks."""

    class EndedError(Exception):
        pass

    def end(code):
        raise EndedError(code)

    told = tmp_path / "error.json"
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_ERROR_FILE": str(told)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "_exit", end)
    with pytest.raises(EndedError, match="1"), plain_errors():
        (tmp_path / "gone").read_text()
    said = f"error on rank 1: {tmp_path / 'gone'}: No such file or directory"
    assert capsys.readouterr().err == f"{said}\n"
    assert json.loads(told.read_text())["message"]["message"] == said


def test_where_nobody_asks_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    tell("lost")
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "gone" / "error.json"))
    tell("lost")
    assert list(tmp_path.iterdir()) == []

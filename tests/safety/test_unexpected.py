"""Whatever goes wrong, the command line says it in plain words."""

import signal
import stat
import subprocess
import sys
import time

import pytest

import debiaspl.__main__
from debiaspl.cli import unexpected
from tests.processes import started


def run(monkeypatch, error: BaseException) -> int:
    def broken() -> None:
        raise error

    monkeypatch.setattr("debiaspl.cli.app", broken)
    monkeypatch.setattr("debiaspl._processes.leave_current_folder", lambda: None)
    with pytest.raises(SystemExit) as ended:
        debiaspl.__main__.main()
    return ended.value.code


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(unexpected.tempfile, "gettempdir", lambda: str(tmp_path))


def test_an_error_nobody_has_foreseen_is_two_lines_and_a_file(tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, ZeroDivisionError("by \x1b[31mzero\nsecond line")) == 1
    first, second = capsys.readouterr().err.splitlines()
    (file,) = tmp_path.iterdir()
    assert first == "error: unexpected ZeroDivisionError: by \N{REPLACEMENT CHARACTER}[31mzero"
    assert second.startswith("This is a bug in debiaspl. Please report it")
    assert second.endswith(str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "Traceback (most recent call last)" in file.read_text()
    assert "second line" in file.read_text()


def test_too_little_memory_is_no_defect(tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, MemoryError("of 3 GB")) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == "error: not enough memory: of 3 GB"
    assert "fewer workers" in second
    assert not list(tmp_path.iterdir())


def test_an_interrupt_is_said_in_one_word(monkeypatch, capsys):
    assert run(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "Stopped.\n"


def test_processes_of_torchrun_keep_their_traceback(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert not unexpected.explain(ValueError("x"))


def test_an_error_of_a_users_own_file_keeps_its_traceback(tmp_path):
    from debiaspl.debias import Correction
    from debiaspl.training.parts import load

    (tmp_path / "mine.py").write_text(
        "from debiaspl.debias import Correction\nclass Mine(Correction):\n    def fail(self): raise KeyError('mine')\n"
    )
    made = load(f"{tmp_path}/mine.py:Mine", Correction)
    with pytest.raises(KeyError) as raised:
        made().fail()
    assert not unexpected.explain(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.05, 0.3, 0.8])
def test_an_interrupt_while_it_loads_prints_no_traceback(tmp_path, moment):
    """At any moment after ``main`` has begun, which then imports the rest."""
    program = (
        "import sys, debiaspl.__main__ as command; print('ready', flush=True)\n"
        "sys.argv = ['debiaspl', 'audit', 'nothing.csv']; command.main()"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started([sys.executable, "-c", program], cwd=tmp_path, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert "Traceback" not in said
    assert process.returncode in (1, 130)

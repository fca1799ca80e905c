"""Whatever goes wrong, the command line says it in plain words."""

import signal
import subprocess
import sys
import time

import pytest
import typer
from torch import OutOfMemoryError

import debiaspl.__main__
from debiaspl.cli.terminal import plain_errors
from tests.processes import started


def run(monkeypatch, error: BaseException) -> int:
    def broken() -> None:
        raise error

    monkeypatch.setattr("debiaspl.cli.app", broken)
    monkeypatch.setattr("debiaspl._processes.leave_current_folder", lambda: None)
    with pytest.raises(SystemExit) as ended:
        debiaspl.__main__.main()
    return ended.value.code


def test_an_error_nobody_has_foreseen_is_a_traceback_and_a_line(monkeypatch, capsys):
    assert run(monkeypatch, ZeroDivisionError("by \x1b[31mzero")) == 1
    *lines, last = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "ZeroDivisionError: by \N{REPLACEMENT CHARACTER}[31mzero" in lines
    assert "report" in last


@pytest.mark.parametrize(
    ("error", "reason"),
    [(MemoryError("of 3 GB"), "of 3 GB"), (OutOfMemoryError("It is full.\nTwice."), "It is full"), (MemoryError(), "")],
)
def test_too_little_memory_is_no_defect(error, reason, capsys):
    with pytest.raises(typer.Exit), plain_errors():
        raise error
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: not enough memory: {reason or 'MemoryError'}. Use ")


def test_an_interrupt_is_said_in_one_word(monkeypatch, capsys):
    assert run(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "Stopped.\n"


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.05, 0.3, 0.8])
def test_an_interrupt_while_it_loads_prints_no_traceback(tmp_path, moment):
    """At any moment after ``main`` has begun, which then imports the rest. Once it has ended, Python dies silently."""
    program = (
        "import sys, debiaspl.__main__ as command, debiaspl._processes as first\n"
        "first.leave_current_folder = lambda: print('ready', flush=True)\n"
        "sys.argv = ['debiaspl', 'audit', 'nothing.csv']; command.main()"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started([sys.executable, "-c", program], cwd=tmp_path, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert "Traceback" not in said
    assert process.returncode in (1, 130) or (process.returncode == -signal.SIGINT and "No such file" in said)

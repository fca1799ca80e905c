"""tests/forked.py: a fork is a process like any other, or tests that use it would see what no user sees."""

import os
from pathlib import Path

import pytest

from tests import forked
from tests.forked import command, program

pytestmark = pytest.mark.slow


def test_its_folder_arguments_output_and_status_are_its_own(tmp_path):
    code = "import os, sys; print(os.getcwd(), sys.argv[1]); print('bad', file=sys.stderr); sys.exit(3)"
    ran = program(code, "one", folder=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, f"{tmp_path} one\n", "bad\n")


def test_an_error_and_a_warning_end_it(tmp_path):
    for code in ("[][0]", "import warnings; warnings.warn('old')"):
        ran = program(code, folder=tmp_path)
        assert ran.returncode == 1
        assert "Traceback" in ran.stderr
    missing = command("report", "nowhere", folder=tmp_path)
    assert missing.returncode == 1
    assert missing.stderr.startswith("error: ")


def test_it_knows_nothing_of_this_process_or_of_another_fork(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "set_here", True, raising=False)
    monkeypatch.setenv("SET_HERE", "and handed on")
    code = "import os; print(hasattr(os, 'set_here'), os.environ['SET_HERE']); os.set_here = True"
    for _ in range(2):
        assert program(code, folder=tmp_path).stdout == "False and handed on\n"


def test_one_that_does_not_end_is_killed_with_what_it_has_started(tmp_path, monkeypatch):
    monkeypatch.setattr(forked, "DEADLINE", 1.0)
    code = """
import pathlib, subprocess
child = subprocess.Popen(["sleep", "60"])
pathlib.Path("pid").write_text(str(child.pid))
child.wait()
"""
    with pytest.raises(AssertionError, match="has not ended after 1 s"):
        program(code, folder=tmp_path)
    state = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_what_was_to_be_done_at_the_end_is_done(tmp_path):
    assert program("import atexit; atexit.register(print, 'end')", folder=tmp_path).stdout == "end\n"

"""tests/forked.py: a fork is a process like any other, or tests that use it would see what no user sees."""

import os

import pytest

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


def test_what_was_to_be_done_at_the_end_is_done(tmp_path):
    assert program("import atexit; atexit.register(print, 'end')", folder=tmp_path).stdout == "end\n"

"""Every file operation fails once: the disk is full, broken, or the process is killed there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.injector import FAULTS, KILL
from tests.faults.scenarios import LONG, SCENARIOS, tried

MOST = 200
HOME = Path(__file__).parents[2]


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != KILL])
def test_a_failing_operation_leaves_the_old_state_or_the_new_one(tmp_path, name, fault):
    at = 0
    while at < MOST and tried(SCENARIOS[name], tmp_path / str(at), fault, at):
        at += 1
    assert 1 < at < MOST


@pytest.mark.slow(seconds=15)
def test_so_does_a_kill_at_any_operation():
    """In a process of its own, which forks: each child is killed at another operation."""
    ended = subprocess.run([sys.executable, "-m", "tests.faults", "--kills"], capture_output=True, text=True, cwd=HOME)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert all(f"kill {name} " in ended.stdout for name in SCENARIOS)


@pytest.mark.slow(seconds=20)
@pytest.mark.parametrize(("fault", "places"), [("ENOSPC", (3, 11, 23)), ("EIO", (7, 29))])
def test_a_run_disturbed_at_an_operation_resumes_to_the_same_bits(tmp_path, fault, places):
    for at in places:
        assert tried(LONG["train"], tmp_path / str(at), fault, at)

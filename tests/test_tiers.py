"""The rule of the first tier, and what is said of skipped tests, on tests that are made here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skipped import lines

ROOT = Path(__file__).parent.parent
MADE = """
import multiprocessing, subprocess, sys, time
import pytest
from tests import tiers
from tests.ranks import on_ranks

tiers.LIMIT = 0.2

def command():
    assert subprocess.run([sys.executable, "-c", "pass"]).returncode == 0

def worker():
    process = multiprocessing.get_context("spawn").Process(target=print)
    process.start()
    process.join()

def busy():
    until = time.process_time() + 0.4
    while time.process_time() < until:
        pass

WORK = {"command": command, "worker": worker, "busy": busy}

@pytest.mark.parametrize("work", WORK)
def test_plain(work):
    try:
        WORK[work]()
    except Exception:  # a program that catches its errors does not hide it
        pass

def test_ranks():
    on_ranks(1, print)

@pytest.mark.slow
@pytest.mark.parametrize("work", WORK)
def test_marked(work):
    WORK[work]()

@pytest.fixture
def started():
    command()

def test_fixture(started):
    pass

@pytest.mark.parametrize("number", range(3))
def test_device(number):
    pytest.skip("no such device")

@pytest.mark.skipif(True, reason="no browser: install one")
def test_page():
    pass

def test_quiet():
    time.sleep(0.3)
"""


def test_the_most_frequent_reason_comes_first():
    assert lines(["b", *["a"] * 1200, "b"]) == ["1,200 skipped: a", "2 skipped: b"]


@pytest.mark.slow
def test_a_test_that_is_not_fast_must_say_so_and_skips_are_counted(tmp_path):
    (tmp_path / "test_made.py").write_text(MADE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    gpu\n")
    plugins = ["-p", "tests.tiers", "-p", "tests.skipped", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-n", "1", "test_made.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        capture_output=True,
    )
    said = ran.stdout
    for name in ("test_plain[command]", "test_plain[worker]", "test_ranks"):
        assert f"{name} starts a process. Do without, or mark it: @pytest.mark.slow" in said, said
    assert "test_fixture starts a process" in said
    assert "test_plain[busy] took 0.4 s of processor time, and a test without a mark may take 0.2" in said
    assert "4 failed, 4 passed, 4 skipped, 1 error" in said
    assert "3 skipped: no such device\n1 skipped: no browser: install one\n" in said

"""No process outlives the one that started it."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.data.photos import write_folder
from tests.processes import descendants, started

PROGRAM = """
import sys, torch
from debiaspl.data.feed import feed
from debiaspl.data.open import read_place
if __name__ == "__main__":
    images = read_place(__import__("pathlib").Path(sys.argv[1]), 16)
    drawn = feed(images, 4, 1, 0, torch.device("cpu"), 2)
    for number in range(10**6):
        drawn[number]
"""


def is_alive(process: int) -> bool:
    """A zombie that nobody has waited for yet is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow(seconds=30)
@pytest.mark.parametrize("later", [0.0, 2.0])
def test_readers_end_with_the_run_however_early_it_is_killed(tmp_path, later):
    write_folder(tmp_path / "photos")
    (tmp_path / "program.py").write_text(PROGRAM)
    with started([sys.executable, str(tmp_path / "program.py"), str(tmp_path / "photos")]) as process:
        deadline = time.monotonic() + 60
        while len(descendants(process.pid)) < 3 and time.monotonic() < deadline:  # two readers, and a tracker
            time.sleep(0.01)
        time.sleep(later)
        children = descendants(process.pid)
        assert len(children) >= 3
        process.kill()
        process.wait()
    deadline = time.monotonic() + 30
    while any(map(is_alive, children)) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = [child for child in children if is_alive(child)]
    for child in left:
        os.kill(child, signal.SIGKILL)
    assert left == []

"""What a user types for several processes under torchrun, and how tests look at them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from debiaspl.training.run import Run

SIZES = {"steps": 160, "width": 4, "labeled_batch": 12, "unlabeled_batch": 24, "log_every": 10, "checkpoint_every": 10}
TESTED = {"per_class": 2, "validation": 0.5, "evaluate_every": 80}
SETTINGS = [part for name, value in (SIZES | TESTED).items() for part in ("--set", f"{name}={value}")]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
COUNTING = """
import os
from pathlib import Path
from debiaspl.__main__ import main
from debiaspl.training import group

def counted(leave=group._leave):
    leave()
    threads = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    os.write(2, f"threads of gloo: {sum('gloo' in name for name in threads)}\\n".encode())

group._leave = counted
main()
"""
"""The command. When it has left the group, is anybody there of those that talked to the other ranks?"""


def command(
    out: Path, ranks: int, *options: str, restarts: int = 0, program: tuple[str, ...] = ("-m", "debiaspl")
) -> list[str]:
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    typed = [*program, "train", "--recipe", "digits-10", *SETTINGS, "--out", str(out), *options]
    return [*run, f"--max-restarts={restarts}", *typed]


def counting(folder: Path) -> tuple[str, ...]:
    (folder / "counting.py").write_text(COUNTING)
    return (str(folder / "counting.py"),)


def ranks_of(torchrun: int) -> list[int]:
    """The processes of the ranks; none while they are being started."""
    children = Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text().split()
    return [int(child) for child in children]


def wait_for(condition: Callable[[], bool], process: "subprocess.Popen[str]", what: str) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert process.poll() is None, f"ended before {what}"
        assert time.monotonic() < deadline, f"not within 90 s: {what}"
        time.sleep(0.02)


def logged(folder: Path) -> int:
    log = Run(folder).log() if folder.exists() else []
    return int(log[-1]["step"]) if log else 0

"""Processes that tests start, and that must not outlive them."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any


@contextmanager
def started(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is killed, with all that it has started, when the block is left before it has ended.

    ``with Popen`` would wait for it, for ever where the test has failed because it does not end; and to read what a
    killed process has said would wait for its children, who hold the other end as well.
    """
    process = subprocess.Popen(command, text=True, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            for one in [process.pid, *descendants(process.pid)]:
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def forking() -> ForkServerContext:
    """Starts processes as forks of one that has imported torch and the package: in a tenth of a second, not in two."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["debiaspl.cli", "debiaspl.recipes", "debiaspl.training"])
    return context


def descendants(process: int) -> list[int]:
    """The processes that this one has started, and theirs."""
    found: list[int] = []
    with suppress(OSError):
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found

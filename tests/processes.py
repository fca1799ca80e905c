"""Processes that tests start, and that must not outlive them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def started(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is killed when the block is left before it has ended. ``with Popen`` would wait for it, for ever
    where the test has failed because it does not end."""
    process = subprocess.Popen(command, text=True, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()

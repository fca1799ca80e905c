"""Processes: cores that they may use, what child processes may import, and when these end.

The current folder is often a folder of photos, and no file in it may be imported. By default ``python -m`` and every
process that multiprocessing starts look for modules there first.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGE = os.path.realpath(Path(__file__).parents[1])
BLOCK, KEPT = 2**28, 2**30
"""In bytes: the largest freed block, and the total, that a command keeps for its next tensors."""


def usable_cores() -> int:
    """How many cores this process may use: a scheduler can leave it a few of those that the machine has."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def rank() -> int | None:
    """Rank of this process among those that torchrun started; None if it is the only one."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ
    return int(os.environ["RANK"]) if several else None


def leave_current_folder() -> None:
    """Stop this process and its children from importing from the current folder, unless this package itself is in it,
    as in a checkout."""
    os.environ.update(_safe_environment())
    sys.path[:] = _elsewhere(sys.path)


def keep_freed_memory() -> bool:
    """Make the C library keep up to 1 GiB of freed memory instead of returning it to the system. Returns success.

    An encoder's activations are larger than the 32 MiB that glibc keeps by default, so every page would be requested
    again: at 160 pixels this took 39 % of the processor time (results/photos/malloc.json). Only commands do this; a
    program that imports this package decides for itself. Settings made by the user take precedence.
    """
    if any(name.startswith("MALLOC_") for name in os.environ) or "GLIBC_TUNABLES" in os.environ:
        return False
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    trim_threshold, mmap_threshold = -1, -3  # the numbers in malloc.h
    return bool(mallopt(mmap_threshold, BLOCK) and mallopt(trim_threshold, KEPT))


@contextmanager
def safe_start() -> Iterator[None]:
    """Context in which new processes do not look for modules in the current folder."""
    safe = _safe_environment()
    before = {name: os.environ.get(name) for name in safe}
    os.environ.update(safe)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _safe_environment() -> dict[str, str]:
    """The environment with PYTHONSAFEPATH set, and without the current folder in PYTHONPATH."""
    changed = {"PYTHONSAFEPATH": "1"}
    if further := os.environ.get("PYTHONPATH"):
        changed["PYTHONPATH"] = os.pathsep.join(_elsewhere(further.split(os.pathsep)))
    return changed


def _elsewhere(places: list[str]) -> list[str]:
    here = os.path.realpath(os.curdir)
    if here != PACKAGE:
        return [place for place in places if os.path.realpath(place) != here]
        # Child processes must find the same package.
    return list(dict.fromkeys(PACKAGE if os.path.realpath(place) == here else place for place in places))


def end_with_parent() -> None:
    """Make this worker process exit when its parent is gone, for whatever reason, even if that was before this call."""
    from multiprocessing import parent_process  # the command line is ready sooner without it

    def wait() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()

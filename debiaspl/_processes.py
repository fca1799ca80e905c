"""Processes that are started: what they may import, and when they end.

The current folder is often somebody's photos, and a file in it must never be imported. ``python -m`` and every process
that multiprocessing starts would look for modules there first.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGE = os.path.realpath(Path(__file__).parents[1])
BLOCK, KEPT = 2**28, 2**30
"""Bytes of a freed block, and of all of them together, up to which a command keeps memory for its next tensor."""


def leave_current_folder() -> None:
    """From here on this process, and all that it starts, import nothing from the current folder, unless this package
    itself lies in it, as in a checkout."""
    os.environ.update(_safe_environment())
    sys.path[:] = _elsewhere(sys.path)


def keep_freed_memory() -> bool:
    """Have the C library keep freed memory, up to 1 GiB, instead of giving it back to the system; whether it does.

    What an encoder computes between two layers is larger than the 32 MiB that glibc keeps by itself, and every page of
    it would be asked for again: at 160 pixels 39 % of the processor time (results/photos/malloc.json). For commands
    alone: a program that imports this package decides for itself. What the user has set goes first.
    """
    if any(name.startswith("MALLOC_") for name in os.environ) or "GLIBC_TUNABLES" in os.environ:
        return False
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    trim_threshold, mmap_threshold = -1, -3  # as malloc.h numbers them
    return bool(mallopt(mmap_threshold, BLOCK) and mallopt(trim_threshold, KEPT))


@contextmanager
def safe_start() -> Iterator[None]:
    """Processes that are started inside do not look for modules in the current folder."""
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
    """Python's own switch, which leaves out the current folder, and without it in the list of further folders."""
    changed = {"PYTHONSAFEPATH": "1"}
    if further := os.environ.get("PYTHONPATH"):
        changed["PYTHONPATH"] = os.pathsep.join(_elsewhere(further.split(os.pathsep)))
    return changed


def _elsewhere(places: list[str]) -> list[str]:
    here = os.path.realpath(os.curdir)
    if here != PACKAGE:
        return [place for place in places if os.path.realpath(place) != here]
    # The processes that are started must find the same package.
    return list(dict.fromkeys(PACKAGE if os.path.realpath(place) == here else place for place in places))


def end_with_parent() -> None:
    """Have this worker process end when the one that started it is gone, however that happened, and though it was
    before this call."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    from multiprocessing import parent_process  # the command line is ready sooner without it

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

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


def leave_current_folder() -> None:
    """From here on this process, and all that it starts, import nothing from the current folder, unless this package
    itself lies in it, as in a checkout."""
    os.environ.update(_safe_environment())
    sys.path[:] = _elsewhere(sys.path)


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

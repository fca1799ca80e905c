"""Two tiers of tests. ``make check`` runs those without the mark ``slow`` or ``gpu``, ``make test`` runs all.

A test without a mark starts no process (no command, ranks, workers or browser) and takes less than ``LIMIT`` seconds
of the processor's time. One that breaks the rule fails with a message that names the mark: nobody has to watch
that the first tier stays fast.
"""

import multiprocessing.process
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest

LIMIT = 5.0
"""Seconds of the processor's time, of the test's own thread; the clock's would also be that of other programs."""

_fast: str | None = None
"""The test that is running, fixtures included, if it has no mark."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, those that say ``slow(seconds=...)`` before them: no long one is left alone at the end."""
    items.sort(key=_seconds, reverse=True)


def _seconds(item: pytest.Item) -> float:
    mark = item.get_closest_marker("slow")
    return 0.0 if mark is None else float(mark.kwargs.get("seconds", 1.0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global _fast
    marked = item.get_closest_marker("slow") or item.get_closest_marker("gpu")
    _fast = None if marked else item.nodeid
    try:
        return (yield)
    finally:
        _fast = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = time.thread_time()
    result = yield
    seconds = time.thread_time() - before
    if _fast is not None and seconds > LIMIT:
        pytest.fail(
            f"{_fast} took {seconds:.1f} s of processor time, and a test without a mark may take {LIMIT:g}. Make it "
            "shorter, or mark it: @pytest.mark.slow",
            pytrace=False,
        )
    return result


def check_processes_are_allowed() -> None:
    """Fails the test that is running if it has no mark."""
    if _fast is not None:
        pytest.fail(f"{_fast} starts a process. Do without, or mark it: @pytest.mark.slow")


def _checked(start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    def checked(*arguments: Any, **options: Any) -> Any:
        check_processes_are_allowed()
        return start(*arguments, **options)

    return checked


def pytest_configure() -> None:
    subprocess.Popen.__init__ = _checked(subprocess.Popen.__init__)  # type: ignore[method-assign]
    multiprocessing.process.BaseProcess.start = _checked(  # type: ignore[method-assign]
        multiprocessing.process.BaseProcess.start
    )

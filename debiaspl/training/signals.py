"""Handles requests to stop."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_remembered: list[int] = []


def remember(number: int, frame: FrameType | None) -> None:
    """A handler for worker processes: the next ``stop_requests`` starts with this signal noted."""
    _remembered.append(number)


@contextmanager
def stop_requests(again: bool = False) -> Iterator[Callable[[], int]]:
    """Context in which Ctrl-C and SIGTERM are noted instead of acting: the callable returns the signal's number, or 0.
    A second signal acts at once, unless ``again``: under torchrun a signal comes from the terminal and once more from
    torchrun. Outside of the main thread Python allows no handlers, and signals act as usual."""
    signals: list[int] = list(_remembered)
    before: dict[int, Any] = {}

    def restore() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    def note(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        if not again:
            restore()

    if threading.current_thread() is threading.main_thread():
        before |= {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
        for each in before:
            signal.signal(each, note)
    try:
        yield lambda: signals[0] if signals else 0
    finally:
        restore()

"""What a run needs from its process: the device, requests to stop, and errors with messages for users."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch


class RunError(RuntimeError):
    """A run cannot start or continue; the message says what was found, what was expected and what to do."""


class Interrupted(RunError):  # noqa: N818 - not an error of the run: it was stopped and has saved its state
    """The run was stopped (Ctrl-C or SIGTERM) and has saved its state."""

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        return type(self), (str(self), self.signal)  # so that a worker process can send it to its parent


def find_device(name: str | None) -> torch.device:
    """The named device; by default ``cuda`` if available, otherwise ``cpu``. ``mps`` must be named: nothing was tested
    there."""
    if name == "mps" and torch.backends.mps.is_available():
        return torch.device(name)
    available = "cuda" if torch.cuda.is_available() else "cpu"
    if name not in (None, "cpu", available):
        hint = "PyTorch finds no usable GPU: does nvidia-smi show one, and is this PyTorch built for it?"
        if available == "cuda":
            hint = "cuda is the first GPU; for another one, put CUDA_VISIBLE_DEVICES=NUMBER in front."
        raise RunError(f"the device is {name!r}, expected cpu or cuda. {hint}")
    return torch.device(name or available)


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

"""A shim between Python and the file system: the Nth operation that writes fails, or is the last one.

It counts what the package writes with: opening, writing, cutting, syncing, renaming, removing, making folders. What is
read is left alone.
"""

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

KILL = "kill"
FAULTS: dict[str, int | None] = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, KILL: None}
CALLS = ("open", "fsync", "replace", "rename", "unlink", "mkdir", "rmdir", "ftruncate")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Injector:
    """Counts operations, and fails number ``at``; with ``at`` < 0 it only counts."""

    def __init__(self, fault: str, at: int) -> None:
        self.fault, self.at = fault, at
        self.count, self.struck = 0, False

    def strikes(self) -> bool:
        self.count += 1
        self.struck |= self.count - 1 == self.at
        return self.count - 1 == self.at

    def fail(self) -> None:
        number = FAULTS[self.fault]
        if number is None:
            os._exit(9)  # as SIGKILL: no clean-up, no exit handlers; what was buffered is lost
        raise OSError(number, os.strerror(number))

    def step(self) -> None:
        if self.strikes():
            self.fail()


class _File:
    """A file open for writing. A write that fails has written half: disks fill up in the middle."""

    def __init__(self, file: Any, injector: Injector) -> None:
        self._file, self._injector = file, injector

    def write(self, content: Any) -> Any:
        if self._injector.strikes():
            self._file.write(content[: len(content) // 2])
            self._file.flush()
            self._injector.fail()
        return self._file.write(content)

    def truncate(self, *length: int) -> Any:
        self._injector.step()
        return self._file.truncate(*length)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "_File":
        self._file.__enter__()
        return self

    def __exit__(self, *error: object) -> Any:
        return self._file.__exit__(*error)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)


@contextmanager
def injected(fault: str, at: int) -> Iterator[Injector]:
    """Inside, the operation of this number fails."""
    injector = Injector(fault, at)
    saved = {name: getattr(os, name) for name in CALLS}
    opened = builtins.open

    def counted(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            flags = arguments[1] if len(arguments) > 1 else 0
            if name != "open" or flags & _WRITING:
                injector.step()
            return call(*arguments, **options)

        return wrapped

    def opening(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+"):
            return opened(file, mode, *arguments, **options)
        if not isinstance(file, int):
            injector.step()
        return _File(opened(file, mode, *arguments, **options), injector)

    try:
        for name, call in saved.items():
            setattr(os, name, counted(call, name))
        builtins.open = io.open = opening  # type: ignore[assignment]
        yield injector
    finally:
        builtins.open = io.open = opened
        for name, call in saved.items():
            setattr(os, name, call)


def struck(work: Callable[[], object], fault: str, at: int, plain: tuple[type[Exception], ...]) -> bool:
    """Do the work with a fault at one operation; False if there are not so many. Only ``plain`` errors are expected.

    A kill happens in a forked process, so that nothing of it is cleaned up.
    """
    if fault != KILL:
        with injected(fault, at) as injector, suppress(*plain):
            work()
        return injector.struck
    child = os.fork()
    if child == 0:
        try:
            with injected(fault, at):
                work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    assert ended in (0, 9), f"the process ended with {ended}"
    return ended == 9

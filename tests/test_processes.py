"""What a command sets up in its own process."""

import ctypes
import os

from benchmarks.origin import machine
from debiaspl import _processes


def test_freed_memory_is_kept_unless_the_user_or_the_c_library_says_otherwise(monkeypatch):
    asked = []

    class Library:
        def mallopt(self, name, value):
            asked.append((name, value))
            return 1

    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    assert _processes.keep_freed_memory()
    assert asked == [(-3, 2**28), (-1, 2**30)]
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not _processes.keep_freed_memory()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "0")
    assert not _processes.keep_freed_memory()
    assert len(asked) == 2


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    """A scheduler or a container may leave it one of the machine's 64."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5}, raising=False)
    assert _processes.usable_cores() == 1
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS
    assert _processes.usable_cores() == 64
    assert machine().endswith(", 64 cores")

"""What a command sets up in its own process."""

import ctypes
import os
from types import SimpleNamespace

from benchmarks.origin import machine
from debiaspl import _processes


def test_freed_memory_is_kept_unless_the_user_decides(monkeypatch):
    asked = []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=lambda *of: asked.append(of) or 1))
    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    assert _processes.keep_freed_memory()
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "0")
    assert not _processes.keep_freed_memory()
    assert asked == [(-3, 2**28), (-1, 2**30)]


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    """A scheduler or a container may leave it one of the machine's 64."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5}, raising=False)
    assert _processes.usable_cores() == 1
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS
    assert _processes.usable_cores() == 64
    assert machine().endswith(", 64 cores")

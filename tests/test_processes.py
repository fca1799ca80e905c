"""What a command sets up in its own process."""

import ctypes

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

"""Memory for pictures that are being decoded: several threads together take no more than there is."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from debiaspl.files import memory

SMALL = 48_000_000
"""Bytes that nobody asks about: 4 million pixels, of which eight threads take less than half a gigabyte."""


class Room:
    """Threads that wait for each other where their pictures do not fit in memory at the same time."""

    def __init__(self) -> None:
        self._taken, self._changed = 0, threading.Condition()

    @contextmanager
    def taken(self, size: int) -> Iterator[bool]:
        """Room for so many bytes, if there is as much at all; False if not. Waits while others have it."""
        if size <= SMALL:
            yield True
            return
        if not memory.fits(size):
            yield False
            return
        with self._changed:
            # What others have taken may not show yet in the memory that is free.
            self._changed.wait_for(lambda: self._taken == 0 or memory.fits(self._taken + size))
            self._taken += size
        try:
            yield True
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()


room = Room()

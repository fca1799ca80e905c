"""Limits the memory of images that are being decoded by several threads at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from debiaspl.files import memory

SMALL = 48_000_000
"""Size in bytes below which nothing is checked: 4 million pixels, or less than half a gigabyte for eight threads."""


class Room:
    """Makes threads wait for each other if their images do not fit in memory at the same time."""

    def __init__(self) -> None:
        self._taken, self._changed = 0, threading.Condition()

    @contextmanager
    def taken(self, size: int) -> Iterator[bool]:
        """Reserve so many bytes; waits while other threads use them. False if they would not fit at all."""
        if size <= SMALL:
            yield True
            return
        if not memory.fits(size):
            yield False
            return
        with self._changed:
            # The memory of other threads may not show up yet as used.
            self._changed.wait_for(lambda: self._taken == 0 or memory.fits(self._taken + size))
            self._taken += size
        try:
            yield True
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()


room = Room()

"""The order in which images are shown. It is decided while they are read, so that the first one appears at once."""

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from threading import Condition, Thread

from debiaspl.data.decode import BadImage, decode
from debiaspl.label.spread import SIDE, Spread, sketch

ENOUGH = 64
"""The first choice waits until this many images are read, for at most ``PATIENCE`` seconds."""
PATIENCE = 0.5
KEPT = 2
"""Images at the front that a guide does not move."""
LONGEST_WAIT = 60
CENTRES = 1_000
"""The first choices differ from at most this many images that have an answer."""
MOST = 20_000
"""Images to choose from: of a larger folder, more are read when these are labeled."""

Guide = Callable[[Iterable[int]], list[int]]
"""From the images with an answer to those that should be shown next; an empty list if there are no more."""


class Order:
    """Which images come next, spread over the set; with a guide, those that it chooses, as soon as it has chosen.

    Two threads at most: one reads small pictures, one asks the guide. ``stop`` ends them.
    """

    def __init__(self, root: Path, files: Sequence[str], answered: Iterable[int], seed: int = 0) -> None:
        self._root, self._files = root, files
        self._answered = set(answered)
        self.unreadable: dict[int, str] = {}
        """Image -> reason, so far."""
        self.failed: str | None = None
        """The error of the guide, if it failed."""
        self._shuffled = random.Random(seed).sample(range(len(files)), len(files))
        self._unread = iter(self._shuffled)
        self._spread, self._head = Spread(seed), deque[int]()
        self._guided, self._again = deque[int](), deque[int]()
        self._changed, self._read_all, self._begun = Condition(), False, time.monotonic()
        self._stopped, self._threads = False, list[Thread]()

    def start(self, guide: Guide | None = None) -> None:
        self._threads = [Thread(target=self._read, name="thumbnails", daemon=True)]
        if guide is not None:
            self._threads.append(Thread(target=self._follow, args=(guide,), name="guide", daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait for the threads: Python must not exit while one of them is inside torch."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(LONGEST_WAIT)

    def upcoming(self, count: int) -> list[int]:
        """The next images. Their order stays the same, except for images that a guide puts first."""
        with self._changed:
            patience = self._begun + PATIENCE - time.monotonic()
            self._changed.wait_for(lambda: self._read_all or len(self._spread) >= ENOUGH, max(patience, 0))
            while len(self._head) < count and (key := self._choose()) is not None:
                self._head.append(key)
            return list(self._head)[:count]

    def answered(self, key: int) -> None:
        with self._changed:
            self._answered.add(key)
            self._forget(key)

    def put_first(self, key: int) -> None:
        """Show an image at once, whose answer was undone."""
        with self._changed:
            self._answered.discard(key)
            self._forget(key)
            self._head.appendleft(key)

    def put_last(self, keys: Iterable[int]) -> None:
        """Show skipped images again after all others."""
        with self._changed:
            for key in keys:
                self._answered.discard(key)
                self._forget(key)
                self._again.append(key)

    def unreadable_now(self, key: int, reason: str) -> None:
        with self._changed:
            self.unreadable[key] = reason
            self._forget(key)

    def _forget(self, key: int) -> None:
        for waiting in (self._head, self._guided, self._again):
            if key in waiting:
                waiting.remove(key)
        self._spread.drop(key)
        self._changed.notify_all()

    def _choose(self) -> int | None:
        if self._guided:
            key = self._guided.popleft()
            self._spread.drop(key)
            return key
        picked = self._spread.pick()
        # With none read at this moment, the next one unseen will do. What was skipped waits for the end.
        while picked is None and (key := next(self._unread, -1)) >= 0:
            if self._is_open(key):
                picked = key
        return self._again.popleft() if picked is None and self._again else picked

    def _is_open(self, key: int) -> bool:
        waiting = key in self._head or key in self._again
        return not waiting and key not in self._answered and key not in self.unreadable

    def _read(self) -> None:
        for key in self._reading_order():
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or len(self._spread) < MOST)
                if self._stopped:
                    return
                if key in self.unreadable:
                    continue
            try:
                made = sketch(decode(self._root / self._files[key], (SIDE, SIDE)).numpy())
            except (BadImage, MemoryError) as error:
                self.unreadable_now(key, str(error) or "not enough memory")
                continue
            with self._changed:
                if self._is_open(key) and key not in self._guided:
                    self._spread.add(key, made)
                else:
                    self._spread.add_centre(made)
                self._changed.notify_all()
        with self._changed:
            self._read_all = True
            self._changed.notify_all()

    def _reading_order(self) -> Iterator[int]:
        """Images without an answer, mixed with some that have one, which the choices should differ from too."""
        old = [key for key in self._shuffled if key in self._answered][:CENTRES]
        new = [key for key in self._shuffled if key not in self._answered]
        for pair in zip_longest(old, new):
            yield from (key for key in pair if key is not None)

    def _follow(self, guide: Guide) -> None:
        """Ask the guide again whenever its last choices are used up."""
        while not self._stopped:
            with self._changed:
                answered = set(self._answered)
            try:
                named = guide(answered)
            except Exception as error:  # the page shows the error
                self.failed = str(error) or type(error).__name__
                return
            with self._changed:
                # The image that is looked at, and the one that may be on its way, stay.
                shown = [self._head.popleft() for _ in range(min(KEPT, len(self._head)))]
                before, self._head = self._head, deque(shown)
                self._guided.extend(key for key in named if self._is_open(key))
                self._guided.extend(key for key in before if key not in self._guided)
                if not any(self._is_open(key) or key in self._guided for key in named):
                    return
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._stopped or not self._guided)

"""The order in which images are shown: at random, until a guide has chosen better ones behind the page."""

import random
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from threading import Condition, Thread

from debiaspl.features.shares import RANDOM
from debiaspl.label.guide import EVERY, Guide, Stopped

KEPT = 2
"""Images at the front that a guide does not move."""
LONGEST_WAIT = 60


class Order:
    """Which images come next. One thread asks the guide; no other call waits for it. ``stop`` ends it."""

    def __init__(self, images: int, answered: Iterable[int], seed: int = 0) -> None:
        self._answered = set(answered)
        self.unreadable: dict[int, str] = {}
        """Image -> reason, so far."""
        self.asked: dict[int, str] = {}
        """Image -> how it was chosen, of those that were shown or that a guide has chosen."""
        self.failed: str | None = None
        """The error of the guide, if it failed."""
        shuffled = random.Random(seed).sample(range(images), images)
        self._queue = deque(key for key in shuffled if key not in self._answered)
        self._chosen: set[int] = set()
        """Of the guide's last choice, those that were not shown."""
        self._changed = Condition()
        self._following: tuple[Guide, Thread] | None = None

    def start(self, guide: Guide) -> None:
        self._following = guide, Thread(target=self._follow, args=(guide,), name="guide", daemon=True)
        self._following[1].start()

    def stop(self) -> None:
        """Wait for the thread: Python must not exit while it is inside torch."""
        if self._following is not None:
            guide, thread = self._following
            with self._changed:
                guide.stopped = True
                self._changed.notify_all()
            thread.join(LONGEST_WAIT)

    def upcoming(self, count: int) -> list[int]:
        """The next images. Their order stays the same, except for images that a guide puts first."""
        with self._changed:
            while self._queue and not self._is_open(self._queue[0]):
                self._queue.popleft()
            keys = list(islice(filter(self._is_open, self._queue), count))
            for key in keys:
                self.asked.setdefault(key, RANDOM)
            self._chosen.difference_update(keys)
            self._changed.notify_all()
            return keys

    def answered(self, key: int) -> None:
        with self._changed:
            self._answered.add(key)
            self._chosen.discard(key)
            self._changed.notify_all()

    def put_first(self, key: int, asked: str = "") -> None:
        """Show an image at once, whose answer was undone; ``asked`` is how it was chosen."""
        with self._changed:
            self._take_back({key}, asked)
            self._queue.appendleft(key)

    def put_last(self, keys: Collection[int]) -> None:
        """Show skipped images again after all others."""
        with self._changed:
            self._take_back(set(keys))
            self._queue.extend(keys)

    def unreadable_now(self, reasons: Mapping[int, str]) -> None:
        with self._changed:
            self.unreadable = {**self.unreadable, **reasons}

    def _take_back(self, keys: set[int], asked: str = "") -> None:
        self._answered -= keys
        self._queue = deque(key for key in self._queue if key not in keys)
        for key in keys:
            self.asked.setdefault(key, asked)

    def _is_open(self, key: int) -> bool:
        return key not in self._answered and key not in self.unreadable

    def _follow(self, guide: Guide) -> None:
        """Ask the guide whenever it has read more images, and then after every few answers."""
        more = True
        while not guide.stopped:
            with self._changed:
                answered = set(self._answered)
            try:
                more = more and guide.learn()
                chosen = guide.choose(answered)
                guide.estimate()
            except Stopped:
                return
            except Exception as error:  # the page shows the error
                self.failed = str(error) or type(error).__name__
                return
            self.unreadable_now(guide.unreadable)
            with self._changed:
                self._put(chosen)
                if not (more or self._chosen):
                    return
                due = len(answered) + EVERY
                while not (more or guide.stopped) and self._chosen and len(self._answered) < due:
                    self._changed.wait()

    def _put(self, chosen: Iterable[tuple[int, str]]) -> None:
        """Show these after the image that is looked at and the one that may be on its way."""
        kept = [key for key in islice(filter(self._is_open, self._queue), KEPT) if key in self.asked]
        asked = {key: how for key, how in chosen if self._is_open(key) and key not in kept}
        self._queue = deque((*kept, *asked, *(key for key in self._queue if key not in asked and key not in kept)))
        self.asked |= asked
        self._chosen = set(asked)

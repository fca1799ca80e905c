"""The order in which images are shown: at random, until a guide has chosen better ones behind the page."""

import random
from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from threading import Condition, Thread

from debiaspl.deploy.next import RANDOM
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
        """Image -> how it was chosen, of those that were shown."""
        self.failed: str | None = None
        """The error of the guide, if it failed."""
        self._shuffled = deque(random.Random(seed).sample(range(images), images))
        self._head, self._guided, self._again = deque[int](), deque[tuple[int, str]](), deque[int]()
        self._changed = Condition()
        self._following: tuple[Guide, Thread] | None = None

    def start(self, guide: Guide) -> None:
        thread = Thread(target=self._follow, args=(guide,), name="guide", daemon=True)
        self._following = guide, thread
        thread.start()

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
            while len(self._head) < count and (key := self._next()) is not None:
                self._head.append(key)
            return list(islice(self._head, count))

    def answered(self, key: int) -> None:
        with self._changed:
            self._answered.add(key)
            self._forget(key)
            self._changed.notify_all()

    def put_first(self, key: int, asked: str = "") -> None:
        """Show an image at once, whose answer was undone; ``asked`` is how it was chosen."""
        with self._changed:
            self._answered.discard(key)
            self._forget(key)
            self._head.appendleft(key)
            self.asked.setdefault(key, asked)

    def put_last(self, keys: Iterable[int]) -> None:
        """Show skipped images again after all others."""
        with self._changed:
            for key in keys:
                self._answered.discard(key)
                self._forget(key)
                self._again.append(key)

    def unreadable_now(self, reasons: Mapping[int, str]) -> None:
        with self._changed:
            for key, reason in reasons.items():
                self.unreadable[key] = reason
                self._forget(key)

    def _forget(self, key: int) -> None:
        for waiting in (self._head, self._again):
            if key in waiting:
                waiting.remove(key)

    def _next(self) -> int | None:
        while self._guided:
            key, asked = self._guided.popleft()
            if not self._guided:
                self._changed.notify_all()
            if self._is_open(key):
                self.asked[key] = asked
                return key
        while self._shuffled:
            key = self._shuffled.popleft()
            if self._is_open(key):
                self.asked[key] = RANDOM
                return key
        return self._again.popleft() if self._again else None  # what was skipped waits for the end

    def _is_open(self, key: int) -> bool:
        waiting = key in self._head or key in self._again
        return not waiting and key not in self._answered and key not in self.unreadable

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
                if not more and not self._guided:
                    return
                if not more:
                    self._changed.wait_for(partial(self._is_due, guide, len(answered) + EVERY))

    def _is_due(self, guide: Guide, answers: int) -> bool:
        return guide.stopped or not self._guided or len(self._answered) >= answers

    def _put(self, chosen: Iterable[tuple[int, str]]) -> None:
        """Show these after the image that is looked at and the one that may be on its way."""
        shown = deque(islice(self._head, KEPT))
        self._shuffled.extendleft(reversed(list(islice(self._head, KEPT, None))))
        self._head = shown
        self._guided = deque(pair for pair in chosen if self._is_open(pair[0]))

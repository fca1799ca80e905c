"""Finds out which rank is missing when the others get no answer."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

GRACE = 10.0
"""Seconds for the ranks to report that they wait too, after one got no answer in time."""
SOON = 2.0
"""The same if they were asked to stop."""
GO_ON = "The newest checkpoint is kept: torchrun with --max-restarts resumes by itself, otherwise use --resume."


@dataclass(frozen=True)
class Missing:
    """A rank that got no answer in time leaves a note in the store; ranks without a note are missing."""

    store: Any
    """Contains ``who/RANK`` and sometimes ``step/RANK`` of every rank."""
    number: int
    count: int
    seconds: float
    """How long it has waited."""

    def found(self, waited: bool, stopping: Callable[[], int]) -> str:
        """A message that names it. ``waited``: there was no answer; otherwise a connection was closed. Fast if asked to
        stop."""
        grace = min(GRACE, self.seconds)
        said: list[str] = []
        # Without a network, a request to the store would wait for minutes, whatever its timeout.
        asking = threading.Thread(target=lambda: said.append(self._asked(grace, waited, stopping)), daemon=True)
        asking.start()
        asking.join(grace + 1)
        return said[0] if said else self._lost()

    def _asked(self, grace: float, waited: bool, stopping: Callable[[], int]) -> str:
        silent = set(range(self.count)) - {self.number}
        try:
            self.store.set_timeout(timedelta(seconds=grace))
            self.store.set(f"waits/{self.number}", "")
            began = time.monotonic()
            # If one has died, torchrun ends the others at once; they wait a moment longer to learn which it was.
            while silent and time.monotonic() < began + (min(grace, SOON) if stopping() else grace):
                time.sleep(0.1)
                silent = {rank for rank in silent if not self.store.check([f"waits/{rank}"])}
            names = [self._described(rank) for rank in sorted(silent)]
        except RuntimeError:
            return self._lost()
        if not names:
            return f"the ranks have lost each other: each waits for another. Check the network. {GO_ON}"
        if not waited and len(names) > 1:
            # The living ranks may wait for one that waits for the dead, and not know it yet.
            return f"one of the ranks is gone: {', or '.join(names[:4])}{' ...' * (len(names) > 4)}. {GO_ON}"
        verb = "has" if len(names) == 1 else "have"
        what = f"{verb} not answered for {self.seconds:g} s" if waited else f"{verb} stopped"
        return f"{', '.join(names)} {what}. {GO_ON}"

    def _lost(self) -> str:
        return (
            f"rank {self.number} has lost the others: neither they nor the machine that started them answer. Check "
            f"the network between the machines. {GO_ON}"
        )

    def _described(self, rank: int) -> str:
        seen = self.store.get(f"step/{rank}").decode() if self.store.check([f"step/{rank}"]) else "none"
        return f"rank {rank} ({self.store.get(f'who/{rank}').decode()}; last seen at step {seen})"

"""Who is missing, when ranks wait in vain."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

GRACE = 10.0
"""Seconds that the ranks have, once one has waited in vain, to say that they wait too."""
SOON = 2.0
"""The same where they have been asked to stop."""
GO_ON = "The newest checkpoint is kept: torchrun with --max-restarts goes on by itself, else use --resume."


@dataclass(frozen=True)
class Missing:
    """A rank that has waited in vain leaves word in the store; those that leave none are missing."""

    store: Any
    """Holds ``who/RANK`` and, now and then, ``step/RANK`` of every rank."""
    number: int
    count: int
    seconds: float
    """That it has waited."""

    def found(self, waited: bool, stopping: Callable[[], int]) -> str:
        """Who it is, in words. ``waited``: nothing came; else a connection was closed. Asked to stop, it is quick."""
        grace = min(GRACE, self.seconds)
        said: list[str] = []
        # Behind a link that is cut, a question to the store would wait for minutes, whatever its timeout.
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
            # Where one has died torchrun ends the others at once, which wait a moment longer to learn which it was.
            while silent and time.monotonic() < began + (min(grace, SOON) if stopping() else grace):
                time.sleep(0.1)
                silent = {rank for rank in silent if not self.store.check([f"waits/{rank}"])}
            names = [self._described(rank) for rank in sorted(silent)]
        except RuntimeError:
            return self._lost()
        if not names:
            return f"the ranks have lost each other: each waits for another. Look at the network. {GO_ON}"
        if not waited and len(names) > 1:
            # Those that live may wait for one that waits for the dead, and not know of it yet.
            return f"one of the ranks has gone: {', or '.join(names[:4])}{' ...' * (len(names) > 4)}. {GO_ON}"
        verb = "has" if len(names) == 1 else "have"
        what = f"{verb} not answered for {self.seconds:g} s" if waited else f"{verb} gone"
        return f"{', '.join(names)} {what}. {GO_ON}"

    def _lost(self) -> str:
        return (
            f"rank {self.number} has lost the others: neither they nor the machine that started them answer. Look "
            f"at the network between the machines. {GO_ON}"
        )

    def _described(self, rank: int) -> str:
        seen = self.store.get(f"step/{rank}").decode() if self.store.check([f"step/{rank}"]) else "none"
        return f"rank {rank} ({self.store.get(f'who/{rank}').decode()}; last seen at step {seen})"

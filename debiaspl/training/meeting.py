"""How the ranks of a group find each other, also after a restart, and which one is missing when there is no answer."""

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from torch import distributed

from debiaspl.training.errors import RunError

STARTING = 60.0
"""Least number of seconds for the ranks to meet: one machine may load torch from a slower disk than another."""
GRACE = 10.0
"""Seconds for the ranks to report that they wait too, after one got no answer in time."""
SOON = 2.0
"""The same if they were asked to stop."""
GO_ON = "The newest checkpoint is kept: use --resume; with --max-restarts too, torchrun resumes by itself."


def connected(backend: str, seconds: float) -> Any:
    """Join the default process group of ``torch.distributed``, from torchrun's environment variables. Returns the
    key-value store that its ranks share, for this start of the processes only."""
    # Imported before there is a group: otherwise its functions would take the current group as their default, and keep
    # it alive forever.
    import torch.distributed.nn.functional  # noqa: F401
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]  # not there in builds without distributed
    from torch.distributed.rendezvous import rendezvous

    if distributed.is_initialized():
        raise RunError(
            "torch.distributed is already initialised, but debiaspl must do it. Call train before, or without, "
            "init_process_group."
        )
    limit, patience = timedelta(seconds=seconds), max(seconds, STARTING)
    try:
        whole, rank, count = next(rendezvous("env://", timeout=timedelta(seconds=patience)))
        store = PrefixStore(f"debiaspl/{meet(PrefixStore('debiaspl', whole), rank, count, patience)}", whole)
        distributed.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=limit)
    except RunError:
        raise
    except RuntimeError as error:
        first_line = str(error).partition("\n")[0].rstrip(".")
        raise RunError(
            f"the ranks cannot reach each other ({first_line}). Each machine needs an address that the others can "
            "reach: --local-addr for torchrun, and the name of that network interface in GLOO_SOCKET_IFNAME and "
            "NCCL_SOCKET_IFNAME. docs/cluster.md has the commands."
        ) from error
    return store


def meet(store: Any, rank: int, count: int, seconds: float) -> str:
    """A name that the ranks of this attempt share, and that no earlier attempt has used.

    torchrun keeps one store over restarts, with the addresses of processes that no longer exist, and a rank that was
    killed early may have been the only one to use it. The environment has no number of the attempt that is equal on all
    machines. So the first rank makes a name and sends it to every other that asks, until each has confirmed it.
    """
    if rank:
        ticket = uuid.uuid4().hex
        store.set(f"asks/{rank}", ticket)
        store.wait([f"told/{ticket}"], timedelta(seconds=seconds))
        name: str = store.get(f"told/{ticket}").decode()
        store.set(f"has/{name}/{rank}", "")
        return name
    name, told, missing = uuid.uuid4().hex, set[str](), set(range(1, count))
    deadline = time.monotonic() + seconds
    while missing:
        for other in sorted(missing):
            if store.check([f"has/{name}/{other}"]):
                missing.discard(other)
            elif store.check([f"asks/{other}"]):
                ticket = store.get(f"asks/{other}").decode()  # perhaps of an earlier attempt: then nobody will answer
                if ticket not in told:
                    store.set(f"told/{ticket}", name)
                    told.add(ticket)
        if time.monotonic() > deadline:
            names = ", ".join(map(str, sorted(missing)))
            raise RunError(f"rank {names} of {count} did not start within {seconds:g} s. Look at its output.")
        time.sleep(0.01)
    return name


@dataclass(frozen=True)
class Missing:
    """A rank that got no answer in time leaves a note in the store; ranks without a note are missing."""

    store: Any
    """Contains ``who/RANK`` and sometimes ``step/RANK`` of every rank."""
    number: int
    count: int
    seconds: float
    """How long it has waited."""

    def message(self, waited: bool, stopping: Callable[[], int]) -> str:
        """A message that names it. ``waited``: there was no answer; otherwise a connection was closed. Fast if asked to
        stop."""
        grace = min(GRACE, self.seconds)
        answers: list[str] = []
        # Without a network, a request to the store would wait for minutes, whatever its timeout.
        asking = threading.Thread(target=lambda: answers.append(self._ask(grace, waited, stopping)), daemon=True)
        asking.start()
        asking.join(grace + 1)
        return answers[0] if answers else self._lost()

    def _ask(self, grace: float, waited: bool, stopping: Callable[[], int]) -> str:
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

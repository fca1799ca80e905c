"""The processes that train one run together: those that torchrun has started, or this one alone."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed

from debiaspl.training.errors import RunError
from debiaspl.training.meeting import Stores, connected

Value = TypeVar("Value")

TIMEOUT = 600.0
"""Seconds that ranks wait for one another, unless told otherwise."""
BETWEEN = 0.5
"""Seconds between two agreements, about: they cost a message, and a stop may wait that long."""
GRACE = 10.0
"""Seconds that the ranks have, once one has waited in vain, to say that they wait too."""


class Group:
    """One process alone, which agrees with itself. ``Ranks`` is the same for several."""

    number, count = 0, 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes the run's folder."""
        return self.number == 0

    def begun_before(self) -> bool:
        """Whether this run had begun when torchrun started its processes again: then they go on with it."""
        return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0

    def note_begun(self) -> None:
        """For the processes of a later start."""

    def agreed_stop(self, step: int, asked: int) -> int:
        """The signal that any of the ranks was asked to stop with, known to all after the same step; 0: none."""
        return asked

    def largest(self, value: int) -> int:
        """Of all ranks."""
        return value

    def from_first(self, value: Value) -> Value:
        """What the first rank has, on all of them."""
        return value

    def merged(self, own: dict[str, str]) -> dict[str, str]:
        """The entries of all ranks on the first; none on the others."""
        return own

    @contextmanager
    def watched(self, stopping: Callable[[], int] = lambda: 0) -> Iterator[None]:
        """Inside, a rank that does not answer ends in an error that names it; asked to stop, it does not look long."""
        yield


class Ranks(Group):
    """Several processes. Tensors travel on the default group; what the hosts say to each other, on one of gloo."""

    def __init__(self, stores: Stores, seconds: float) -> None:
        self.number, self.count = distributed.get_rank(), distributed.get_world_size()
        self._store, self._kept, self._seconds = stores.own, stores.kept, seconds
        gloo = distributed.get_backend() == "gloo"
        limit = timedelta(seconds=seconds)
        self._hosts = None if gloo else distributed.new_group(backend="gloo", timeout=limit)
        self._next, self._last = 0, (0, time.monotonic())
        self._store.set(f"who/{self.number}", f"process {os.getpid()} on {socket.gethostname()}")

    def begun_before(self) -> bool:
        # A machine whose own processes had lived counts no restart, though all are started again.
        return super().begun_before() if self._kept is None else bool(self._kept.check(["begun"]))

    def note_begun(self) -> None:
        if self._kept is not None:
            self._kept.set("begun", "")

    def agreed_stop(self, step: int, asked: int) -> int:
        if step < self._next:
            return 0
        before, then = self._last
        self._last = step, time.monotonic()
        pace = (step - before) / max(self._last[1] - then, 1e-9)
        self._store.set(f"step/{self.number}", str(step))
        # Every rank must come back to this after the same step: they agree on that too.
        message = torch.tensor([asked, max(1, int(pace * BETWEEN))])
        distributed.all_reduce(message, distributed.ReduceOp.MAX, group=self._hosts)
        self._next = step + int(message[1])
        return int(message[0])

    def largest(self, value: int) -> int:
        message = torch.tensor(value)
        distributed.all_reduce(message, distributed.ReduceOp.MAX, group=self._hosts)
        return int(message)

    def from_first(self, value: Value) -> Value:
        box = [value]
        distributed.broadcast_object_list(box, src=0, group=self._hosts)
        return box[0]

    def merged(self, own: dict[str, str]) -> dict[str, str]:
        everyone: list[Any] = [None] * self.count
        distributed.all_gather_object(everyone, own, group=self._hosts)
        return {name: text for one in everyone for name, text in one.items()} if self.first else {}

    @contextmanager
    def watched(self, stopping: Callable[[], int] = lambda: 0) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if not (isinstance(error, distributed.DistError) or "gloo" in str(error)):
                raise
            raise RunError(self._missing("timed out" in str(error).lower(), stopping)) from error

    def _missing(self, waited: bool, stopping: Callable[[], int]) -> str:
        """Who does not wait, when the others do."""
        grace = min(GRACE, self._seconds)
        found: list[str] = []
        # Behind a link that is cut, a question to the store would wait for minutes, whatever its timeout.
        asking = threading.Thread(target=lambda: found.append(self._asked(grace, waited, stopping)), daemon=True)
        asking.start()
        asking.join(grace + 1)
        return found[0] if found else self._lost()

    def _asked(self, grace: float, waited: bool, stopping: Callable[[], int]) -> str:
        silent = set(range(self.count)) - {self.number}
        try:
            self._store.set_timeout(timedelta(seconds=grace))
            self._store.set(f"waits/{self.number}", "")
            deadline = time.monotonic() + grace
            while silent and time.monotonic() < deadline and not stopping():
                time.sleep(0.1)
                silent = {rank for rank in silent if not self._store.check([f"waits/{rank}"])}
            names = [self._described(rank) for rank in sorted(silent)]
        except RuntimeError:
            return self._lost()
        if not names:
            return f"the ranks have lost each other: each waits for another. Look at the network. {GO_ON}"
        verb = "has" if len(names) == 1 else "have"
        what = f"{verb} not answered for {self._seconds:g} s" if waited else f"{verb} gone"
        return f"{', '.join(names)} {what}. {GO_ON}"

    def _lost(self) -> str:
        return (
            f"rank {self.number} has lost the others: neither they nor the machine that started them answer. Look "
            f"at the network between the machines. {GO_ON}"
        )

    def _described(self, rank: int) -> str:
        seen = self._store.get(f"step/{rank}").decode() if self._store.check([f"step/{rank}"]) else "none"
        return f"rank {rank} ({self._store.get(f'who/{rank}').decode()}; last seen at step {seen})"


GO_ON = "The newest checkpoint is kept: torchrun with --max-restarts goes on by itself, else use --resume."


def in_a_group() -> bool:
    """Whether this process is one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


@contextmanager
def joined(device: torch.device, seconds: float) -> Iterator[Group]:
    """The group that this process was started in; ``seconds`` is how long its ranks wait for one another."""
    if not in_a_group():
        yield Group()
        return
    if device.type == "cuda":
        _take_gpu()
        # A step that is recorded holds NCCL's work where its watchdog cannot follow; the hosts watch instead.
        os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
    stores = connected("nccl" if device.type == "cuda" else "gloo", seconds)
    try:
        yield Ranks(stores, seconds)
    finally:
        distributed.destroy_process_group()


def _take_gpu() -> None:
    number, gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if number >= gpus:
        here = os.environ.get("LOCAL_WORLD_SIZE", str(number + 1))
        raise RunError(f"{here} processes on this machine, which has {gpus} GPUs: use --nproc-per-node={gpus}.")
    torch.cuda.set_device(number)

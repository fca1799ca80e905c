"""The processes that train one run together: those that torchrun has started, or this one alone."""

import gc
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed

from debiaspl._torchrun import rank
from debiaspl.training.errors import Interrupted, RunError
from debiaspl.training.meeting import Stores, connected, kept_alone
from debiaspl.training.missing import Missing

Value = TypeVar("Value")

TIMEOUT = 600.0
"""Seconds that ranks wait for one another, unless told otherwise."""
BETWEEN = 0.5
"""Seconds between two agreements, about: they cost a message, and a stop may wait that long."""


class Group:
    """One process alone, which agrees with itself. ``Ranks`` is the same for several."""

    number, count = 0, 1

    def __init__(self, kept: Any | None = None) -> None:
        self._kept = kept

    @property
    def first(self) -> bool:
        """Whether this is the one that writes the run's folder."""
        return self.number == 0

    def begun_before(self) -> bool:
        """Whether this run had begun when torchrun started its processes again: then they go on with it."""
        # A folder that was refused is refused again, so it is not enough that there was a start before. And a machine
        # whose own processes had lived counts no restart, though all are started again.
        if self._kept is not None:
            return bool(self._kept.check(["begun"]))
        return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0

    def note_begun(self) -> None:
        """For the processes of a later start."""
        if self._kept is not None:
            self._kept.set("begun", "")

    def agreed_stop(self, step: int, asked: int) -> int:
        """The signal that any of the ranks was asked to stop with, known to all after the same step; 0: none."""
        return asked

    def largest(self, value: int) -> int:
        """Of all ranks."""
        return value

    def from_first(self, value: Value) -> Value:
        """What the first rank has, on all of them."""
        return value

    def everyone(self, own: Value) -> list[Value]:
        """What each rank has, by rank, on all of them; it may have another size on each."""
        return [own]

    def merged(self, own: dict[str, str]) -> dict[str, str]:
        """The entries of all ranks on the first; none on the others."""
        return own

    @contextmanager
    def watched(self, stopping: Callable[[], int] = lambda: 0) -> Iterator[None]:
        """Inside, a rank that does not answer ends in an error that names it; asked to stop, it does not look long."""
        yield


ALONE = Group()
"""For what every process computes whole, whether there are others or not."""


class Ranks(Group):
    """Several processes. Tensors travel on the default group; what the hosts say to each other, on one of gloo."""

    def __init__(self, stores: Stores, seconds: float) -> None:
        self.number, self.count = distributed.get_rank(), distributed.get_world_size()
        super().__init__(stores.kept)
        self._store, self._seconds = stores.own, seconds
        gloo = distributed.get_backend() == "gloo"
        limit = timedelta(seconds=seconds)
        self._hosts = None if gloo else distributed.new_group(backend="gloo", timeout=limit)
        self._next = 0
        self._last: tuple[int, float] | None = None
        self._store.set(f"who/{self.number}", f"process {os.getpid()} on {socket.gethostname()}")  # see missing.py

    def agreed_stop(self, step: int, asked: int) -> int:
        if step < self._next:
            return 0
        now = time.monotonic()
        # Steps of an earlier part of the run are no measure: the first call knows no pace.
        before, then = self._last or (step, now)
        pace = (step - before) / max(now - then, 1e-9)
        self._last = step, now
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

    def everyone(self, own: Value) -> list[Value]:
        found: list[Any] = [None] * self.count
        distributed.all_gather_object(found, own, group=self._hosts)
        return found

    def merged(self, own: dict[str, str]) -> dict[str, str]:
        everyone = self.everyone(own)
        return {name: text for one in everyone for name, text in one.items()} if self.first else {}

    def forget(self) -> None:
        """It is of no use any more."""
        self._hosts = None

    @contextmanager
    def watched(self, stopping: Callable[[], int] = lambda: 0) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            about_the_network = isinstance(error, distributed.DistError) or "gloo" in str(error)
            if isinstance(error, RunError) or not about_the_network:
                raise
            missing = Missing(self._store, self.number, self.count, self._seconds)
            raise RunError(missing.found("timed out" in str(error).lower(), stopping)) from error


@contextmanager
def joined(device: torch.device, seconds: float) -> Iterator[Group]:
    """The group that this process was started in; ``seconds`` is how long its ranks wait for one another."""
    if rank() is None:
        yield Group(kept_alone(seconds))
        return
    if device.type == "cuda":
        _take_gpu()
        # A step that is recorded holds NCCL's work where its watchdog cannot follow; the hosts watch instead.
        os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
    stores = connected("nccl" if device.type == "cuda" else "gloo", seconds)
    leave, group, callers = True, None, sys.exception()
    try:
        group = Ranks(stores, seconds)
        yield group
    except BaseException as error:
        # NCCL would first wait for messages that the others never send, and the error would never be seen; unless all
        # of them have stopped after the same step.
        leave = isinstance(error, Interrupted) or device.type != "cuda"
        _forget_locals(error, callers)
        raise
    finally:
        if leave:
            if group is not None:
                group.forget()
            _leave()


def _forget_locals(error: BaseException, callers: BaseException | None) -> None:
    """An error, and those behind it, hold all that the functions knew which they came through. Another one that the
    caller has at hand is none of ours."""
    seen, found = {id(callers)}, [error]
    while found:
        one = found.pop()
        if id(one) not in seen:
            seen.add(id(one))
            traceback.clear_frames(one.__traceback__)
            found += [behind for behind in (one.__cause__, one.__context__) if behind is not None]


def _leave() -> None:
    """Nobody may hold a DistributedDataParallel any more.

    The threads that have sent and received let go of their last tensors a moment later than those are needed, for which
    they need Python. If Python is ending then, the process aborts; and if the last one to hold the group is a
    DistributedDataParallel, which waits for the threads and lets Python wait with it, it hangs. The group itself waits
    for them and lets Python go on.
    """
    gc.collect()
    distributed.destroy_process_group()


def _take_gpu() -> None:
    number, gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if number >= gpus:
        here = os.environ.get("LOCAL_WORLD_SIZE", str(number + 1))
        raise RunError(f"{here} processes on this machine, which has {gpus} GPUs: use --nproc-per-node={gpus}.")
    torch.cuda.set_device(number)
    # A recording takes no stream but its own; DistributedDataParallel keeps the one it was made on, and gradients of
    # another are waited for, with a warning. So everything is on one stream, which is not the default one.
    torch.cuda.set_stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]  # torch leaves it without types

"""The processes that train one run together: those started by torchrun, or this one alone."""

import gc
import os
import sys
import time
import traceback
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed

from debiaspl._processes import rank
from debiaspl.training.process import Interrupted, RunError

Value = TypeVar("Value")

TIMEOUT = 600.0
"""Default for how many seconds ranks wait for one another."""
BETWEEN = 0.5
"""Approximate seconds between two agreements: each costs a message, and a stop may wait that long."""
STARTING = 60.0
"""Least number of seconds for the ranks to meet: one machine may load torch from a slower disk than another."""


class Group:
    """A single process, which agrees with itself. ``Ranks`` is the same for several."""

    number, count = 0, 1

    @property
    def first(self) -> bool:
        """Whether this process writes the run's folder."""
        return self.number == 0

    def agreed_stop(self, step: int, asked: int) -> int:
        """The signal with which any rank was asked to stop, known to all after the same step; 0: none."""
        return asked

    def largest(self, value: int) -> int:
        return value

    def from_first(self, value: Value) -> Value:
        """The first rank's value, on all ranks."""
        return value

    def everyone(self, value: Value) -> list[Value]:
        """Each rank's value, by rank, on all ranks; sizes may differ."""
        return [value]

    def merged(self, entries: dict[str, str]) -> dict[str, str]:
        """The entries of all ranks on the first; empty on the others."""
        everyone = self.everyone(entries)
        return {name: text for one in everyone for name, text in one.items()} if self.first else {}


ALONE = Group()
"""For work that every process does completely, with or without others."""


class Ranks(Group):
    """Several processes. Tensors use the default group; messages between hosts use a gloo group."""

    def __init__(self, seconds: float) -> None:
        self.number, self.count, self._seconds = distributed.get_rank(), distributed.get_world_size(), seconds
        gloo, limit = distributed.get_backend() == "gloo", timedelta(seconds=seconds)
        self._hosts = None if gloo else distributed.new_group(backend="gloo", timeout=limit)
        self._next = 0
        self._last: tuple[int, float] | None = None

    def agreed_stop(self, step: int, asked: int) -> int:
        if step < self._next:
            return 0
        now = time.monotonic()
        # Steps of an earlier part of the run do not count: the first call knows no speed.
        before, then = self._last or (step, now)
        speed = (step - before) / max(now - then, 1e-9)
        self._last = step, now
        # Every rank must call this again after the same step: they agree on that too.
        message = torch.tensor([asked, max(1, int(speed * BETWEEN))])
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

    def everyone(self, value: Value) -> list[Value]:
        values: list[Any] = [None] * self.count
        distributed.all_gather_object(values, value, group=self._hosts)
        return values

    def forget(self) -> None:
        self._hosts = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Context in which a rank that does not answer causes an error with a message for users."""
        try:
            yield
        except RuntimeError as error:
            about_the_network = isinstance(error, distributed.DistError) or "gloo" in str(error)
            if isinstance(error, RunError) or not about_the_network:
                raise
            late = "timed out" in str(error).lower()
            what = f"has not answered for {self._seconds:g} s" if late else "has stopped or cannot be reached"
            kept = "The newest checkpoint is kept: use --resume."
            raise RunError(f"another rank {what}: see its output. {kept}") from error


@contextmanager
def joined(device: torch.device, seconds: float) -> Iterator[Group]:
    """The group in which this process was started; ``seconds`` is how long its ranks wait for one another."""
    if rank() is None:
        yield Group()
        return
    if device.type == "cuda":
        _take_gpu()
        # NCCL's watchdog cannot see the messages of a recorded step; the hosts watch instead.
        os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
    _connect("nccl" if device.type == "cuda" else "gloo", seconds)
    leave, group, callers = True, None, sys.exception()
    try:
        group = Ranks(seconds)
        with group.watched():
            yield group
    except BaseException as error:
        # NCCL would wait for messages that the others never send, unless all have stopped after the same step.
        leave = isinstance(error, Interrupted) or device.type != "cuda"
        _forget_locals(error, callers)
        raise
    finally:
        if leave:
            if group is not None:
                group.forget()
            _leave()


def _connect(backend: str, seconds: float) -> None:
    """Join the default process group of ``torch.distributed``, from torchrun's environment variables."""
    # Imported before there is a group: otherwise its functions would take the current group as their default, and keep
    # it alive forever.
    import torch.distributed.nn.functional  # noqa: F401
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]  # not there in builds without distributed
    from torch.distributed.rendezvous import rendezvous

    if distributed.is_initialized():
        raise RunError("torch.distributed is already initialised, but train does that: do not initialise it before.")
    limit, patience = timedelta(seconds=seconds), max(seconds, STARTING)
    try:
        whole, rank, count = next(rendezvous("env://", timeout=timedelta(seconds=patience)))
        store = PrefixStore(f"debiaspl/{_meet(PrefixStore('debiaspl', whole), rank, count, patience)}", whole)
        distributed.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=limit)
    except RunError:
        raise
    except RuntimeError as error:
        first_line = str(error).partition("\n")[0].rstrip(".")
        need = "Each machine needs an address that the others can reach: docs/cluster.md has the commands."
        raise RunError(f"the ranks cannot reach each other ({first_line}). {need}") from error


def _meet(store: Any, rank: int, count: int, seconds: float) -> str:
    """A name that the ranks of this attempt share, and that no earlier attempt has used.

    torchrun keeps one store over restarts, with the addresses of processes that no longer exist, and no number of the
    attempt that is equal on all machines. So the first rank makes a name and sends it to every other that asks, until
    each has confirmed it.
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


def _forget_locals(error: BaseException, callers: BaseException | None) -> None:
    """Clear the local variables of the functions that an error, and those it was raised from, went through. An error
    that the caller is already handling is not touched."""
    seen, errors = {id(callers)}, [error]
    while errors:
        one = errors.pop()
        if id(one) not in seen:
            seen.add(id(one))
            traceback.clear_frames(one.__traceback__)
            errors += [behind for behind in (one.__cause__, one.__context__) if behind is not None]


def _leave() -> None:
    """Destroy the process group. No DistributedDataParallel may be referenced any more: the last to hold the group
    would wait for the sending threads while it blocks Python, which they need, and hang."""
    gc.collect()
    distributed.destroy_process_group()


def _take_gpu() -> None:
    number, gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if number >= gpus:
        here = os.environ.get("LOCAL_WORLD_SIZE", str(number + 1))
        raise RunError(f"{here} processes on this machine, which has {gpus} GPUs. Use --nproc-per-node={gpus}.")
    torch.cuda.set_device(number)
    # A recording uses only its own stream. DistributedDataParallel keeps the stream on which it was made, and waits for
    # gradients of another one, with a warning. So everything is on one stream, which is not the default one.
    torch.cuda.set_stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]  # torch leaves it without types

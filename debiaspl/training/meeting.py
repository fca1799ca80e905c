"""How the ranks of a group find each other, again after a restart."""

import os
import time
import uuid
from datetime import timedelta
from typing import Any, NamedTuple

from torch import distributed

from debiaspl.training.errors import RunError

STARTING = 60.0
"""Seconds that the ranks have at least to meet: one machine may read torch from a slower disk than another."""


class Stores(NamedTuple):
    """Where ranks leave words for each other."""

    own: Any
    """Of this start of the processes alone."""
    kept: Any | None
    """The same one after a restart; None where torchrun keeps none."""


def connected(backend: str, seconds: float) -> Stores:
    """Join the default process group of ``torch.distributed``, as the environment says that torchrun has made."""
    # Before there is a group: read later, its functions would take the one of that moment for their default, and it
    # would never end.
    import torch.distributed.nn.functional  # noqa: F401
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]  # not there in builds without distributed
    from torch.distributed.rendezvous import rendezvous

    if distributed.is_initialized():
        raise RunError(
            "torch.distributed has been initialised already. Let debiaspl do it: call train before, or without, "
            "init_process_group."
        )
    limit, patience = timedelta(seconds=seconds), max(seconds, STARTING)
    try:
        whole, rank, count = next(rendezvous("env://", timeout=timedelta(seconds=patience)))
        kept = PrefixStore("debiaspl", whole)
        own = PrefixStore(f"debiaspl/{meet(kept, rank, count, patience)}", whole)
        distributed.init_process_group(backend, store=own, rank=rank, world_size=count, timeout=limit)
    except RunError:
        raise
    except RuntimeError as error:
        first_line = str(error).partition("\n")[0].rstrip(".")
        raise RunError(
            f"the ranks do not reach each other ({first_line}). Each machine must be told an address that the others "
            "reach it at: --local-addr for torchrun, and the name of that network interface in GLOO_SOCKET_IFNAME and "
            "NCCL_SOCKET_IFNAME. docs/cluster.md has the commands."
        ) from error
    return Stores(own, kept if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else None)


def kept_alone(seconds: float) -> Any | None:
    """What ``Stores.kept`` is, for a process that torchrun has started as the only one."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]  # not there in builds without distributed
    from torch.distributed.rendezvous import rendezvous

    return PrefixStore("debiaspl", next(rendezvous("env://", timeout=timedelta(seconds=seconds)))[0])


def meet(store: Any, rank: int, count: int, seconds: float) -> str:
    """A name that the ranks of this attempt share, and those of an attempt before have not used.

    torchrun keeps one store over restarts, with the addresses of processes that are dead by now, and a rank that was
    killed early may have been alone in using it: nothing in the environment numbers the attempts alike on all machines.
    So the first rank makes a name up and hands it to every other that asks, until each has said that it has it.
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
                ticket = store.get(f"asks/{other}").decode()  # of an earlier attempt, it may be: nobody will answer
                if ticket not in told:
                    store.set(f"told/{ticket}", name)
                    told.add(ticket)
        if time.monotonic() > deadline:
            names = ", ".join(map(str, sorted(missing)))
            raise RunError(f"rank {names} of {count} did not start within {seconds:g} s. Look at what it has said.")
        time.sleep(0.01)
    return name

"""How the ranks of a group find each other, also after a restart."""

import os
import time
import uuid
from datetime import timedelta
from typing import Any, NamedTuple

from torch import distributed

from debiaspl.training.errors import RunError

STARTING = 60.0
"""Least number of seconds for the ranks to meet: one machine may load torch from a slower disk than another."""


class Stores(NamedTuple):
    """Key-value stores shared by the ranks."""

    own: Any
    """Only for this start of the processes."""
    kept: Any | None
    """The same one after a restart; None if torchrun keeps none."""


def connected(backend: str, seconds: float) -> Stores:
    """Join the default process group of ``torch.distributed``, from torchrun's environment variables."""
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
        kept = PrefixStore("debiaspl", whole)
        own = PrefixStore(f"debiaspl/{meet(kept, rank, count, patience)}", whole)
        distributed.init_process_group(backend, store=own, rank=rank, world_size=count, timeout=limit)
    except RunError:
        raise
    except RuntimeError as error:
        first_line = str(error).partition("\n")[0].rstrip(".")
        raise RunError(
            f"the ranks cannot reach each other ({first_line}). Each machine needs an address that the others can "
            "reach: --local-addr for torchrun, and the name of that network interface in GLOO_SOCKET_IFNAME and "
            "NCCL_SOCKET_IFNAME. docs/cluster.md has the commands."
        ) from error
    return Stores(own, kept if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else None)


def kept_alone(seconds: float) -> Any | None:
    """``Stores.kept`` for a process that torchrun has started as the only one."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]  # not there in builds without distributed
    from torch.distributed.rendezvous import rendezvous

    return PrefixStore("debiaspl", next(rendezvous("env://", timeout=timedelta(seconds=seconds)))[0])


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

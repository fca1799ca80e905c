"""What the ranks of a run tell each other: sums and rows of all of them, inside one step.

In one process, with ``torch.distributed`` or without, everything here gives back what it was given. Nothing waits for
the device and nothing is pickled, so that a step that uses this can be recorded and replayed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed

_alone = False


@contextmanager
def alone() -> Iterator[None]:
    """Inside, this process is the only one: for work that ranks have dealt out, and that each does as if by itself."""
    global _alone
    before, _alone = _alone, True
    try:
        yield
    finally:
        _alone = before


def count() -> int:
    """How many ranks there are."""
    if _alone:
        return 1
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def own() -> int:
    """The number of this one, from 0."""
    return distributed.get_rank() if count() > 1 else 0


def summed(values: Tensor) -> Tensor:
    """The sum over ranks, without gradients; each rank holds the same bits."""
    if count() == 1:
        return values
    total = values.detach().clone(memory_format=torch.contiguous_format)
    add_up(total)
    return total


def add_up(values: Tensor) -> None:
    """``summed``, in place: for a tensor that there is no room for twice."""
    if count() > 1:
        distributed.all_reduce(values)


def mean(values: Tensor) -> Tensor:
    """The mean over ranks, without gradients: that of the joint batch, if every rank has as many rows."""
    return values if count() == 1 else summed(values) / count()


def gathered(rows: Tensor) -> Tensor:
    """The rows of all ranks along dimension 0, by rank, without gradients. Every rank gives the same shape."""
    if count() == 1:
        return rows
    rows = rows.detach().contiguous()
    everyone = rows.new_empty((count() * rows.shape[0], *rows.shape[1:]))
    # Torch 2.13 has given it another name, and warns of the old one.
    renamed = hasattr(distributed, "all_gather_single")
    (distributed.all_gather_single if renamed else distributed.all_gather_into_tensor)(everyone, rows)
    return everyone


def of_first(values: Tensor) -> Tensor:
    """What the first rank holds, without gradients."""
    if count() == 1:
        return values
    sent = values.detach().clone(memory_format=torch.contiguous_format)
    distributed.broadcast(sent, src=0)
    return sent


def gathered_with_gradient(rows: Tensor) -> Tensor:
    """``gathered``, whose rows receive the sum of what all ranks' losses say of them.

    With gradients averaged over ranks, as DistributedDataParallel does it, that is the gradient of the mean loss.
    """
    if count() == 1:
        return rows
    everyone: Tensor = _Gathered.apply(rows)  # type: ignore[no-untyped-call]  # torch leaves it without types
    return everyone


def summed_with_gradient(values: Tensor) -> Tensor:
    """``summed``, with gradients as in ``gathered_with_gradient``."""
    return values if count() == 1 else gathered_with_gradient(values[None]).sum(0)


def own_part(whole: Tensor, dim: int = 0) -> Tensor:
    """This rank's part of what all ranks hold alike: equal parts, by rank, that lie behind each other."""
    if count() == 1:
        return whole
    size, rest = divmod(whole.shape[dim], count())
    if rest:
        raise ValueError(
            f"{whole.shape[dim]} rows for {count()} ranks, expected equal parts. Use a batch that the number of ranks "
            "divides."
        )
    return whole.narrow(dim, own() * size, size)


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        return gathered(rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return own_part(summed(gradient))

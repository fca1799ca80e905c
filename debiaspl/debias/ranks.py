"""Communication between the ranks of a run inside one step; in a single process every function returns its input.

Nothing waits for the device and nothing is pickled, so that a step can be recorded as a CUDA graph.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed

_alone = False


@contextmanager
def alone() -> Iterator[None]:
    """Context in which this process acts as the only rank."""
    global _alone
    before, _alone = _alone, True
    try:
        yield
    finally:
        _alone = before


def count() -> int:
    if _alone:
        return 1
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def own() -> int:
    return distributed.get_rank() if count() > 1 else 0


def summed(values: Tensor) -> Tensor:
    """Sum over ranks, without gradients; every rank gets the same bits."""
    if count() == 1:
        return values
    total = values.detach().clone(memory_format=torch.contiguous_format)
    add_up(total)
    return total


def add_up(values: Tensor) -> None:
    """``summed`` in place, for a tensor too large for a second copy."""
    if count() > 1:
        distributed.all_reduce(values)


def mean(values: Tensor) -> Tensor:
    """Mean over ranks, without gradients."""
    return values if count() == 1 else summed(values) / count()


def gathered(rows: Tensor) -> Tensor:
    """Rows of all ranks, in the order of ranks, without gradients. All ranks pass the same shape."""
    if count() == 1:
        return rows
    rows = rows.detach().contiguous()
    everyone = rows.new_empty((count() * rows.shape[0], *rows.shape[1:]))
    # Torch 2.13 renamed this function and warns about the old name.
    renamed = hasattr(distributed, "all_gather_single")
    (distributed.all_gather_single if renamed else distributed.all_gather_into_tensor)(everyone, rows)
    return everyone


def of_first(values: Tensor) -> Tensor:
    """The first rank's values, without gradients."""
    if count() == 1:
        return values
    sent = values.detach().clone(memory_format=torch.contiguous_format)
    distributed.broadcast(sent, src=0)
    return sent


def gathered_with_gradient(rows: Tensor) -> Tensor:
    """``gathered`` with gradients: each row gets the sum of its gradients in all ranks' losses. Averaged over ranks, as
    DistributedDataParallel does, this is the gradient of the mean loss."""
    return rows if count() == 1 else _Gathered.apply(rows)  # type: ignore[no-untyped-call]  # torch leaves it untyped


def summed_with_gradient(values: Tensor) -> Tensor:
    """``summed``, with gradients as in ``gathered_with_gradient``."""
    return values if count() == 1 else gathered_with_gradient(values[None]).sum(0)


def own_part(whole: Tensor, dim: int = 0) -> Tensor:
    """This rank's part of a tensor that is equal on all ranks: consecutive equal parts, in the order of ranks."""
    if count() == 1:
        return whole
    size = whole.shape[dim] // count()
    return whole.narrow(dim, own() * size, size)


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        return gathered(rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return own_part(summed(gradient))

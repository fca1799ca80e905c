"""What the ranks of a run exchange in a step: the gradients."""

from contextlib import AbstractContextManager, nullcontext
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from debiaspl.algorithms import Algorithm, Batch, Models
from debiaspl.debias import ranks
from debiaspl.training.errors import RunError


class Losses(nn.Module):
    """``losses(batch)``: the algorithm with its networks, in the one module that DistributedDataParallel wraps. The
    teacher is none of its parts: an average has no gradients to be exchanged."""

    def __init__(self, models: Models, algorithm: Algorithm) -> None:
        super().__init__()
        self.student, self.algorithm = models.student, algorithm
        self._models = models

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self.algorithm.losses(self._models, batch)


def exchanged(losses: Losses, device: torch.device) -> nn.Module:
    """With several ranks, a module whose gradients are the mean over all of them."""
    if ranks.count() == 1:
        return losses
    # Buffers are combined where they are learned; sent round by the first rank they would be its own alone.
    newer = "forward_sync_buffers" in signature(DistributedDataParallel).parameters
    keep_buffers: dict[str, Any] = {"forward_sync_buffers" if newer else "broadcast_buffers": False}
    if device.type != "cuda":
        return DistributedDataParallel(losses, **keep_buffers)
    # PyTorch asks for it to be made beside the main stream, if it is to be recorded.
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch leaves it without types
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        made = DistributedDataParallel(losses, **keep_buffers)
    torch.cuda.current_stream().wait_stream(side)
    return made


def exchange_later(losses: nn.Module, later: bool) -> AbstractContextManager[None]:
    """Inside, gradients stay with their rank, if ``later``: the next exchange takes their sum."""
    return losses.no_sync() if later and isinstance(losses, DistributedDataParallel) else nullcontext()


def check_parts(labeled: int, unlabeled: int, count: int, accumulate: int) -> None:
    """Every rank, and every piece, has as many images: so the mean of their means is the mean of the batch."""
    for name, size in (("labeled_batch", labeled), ("unlabeled_batch", unlabeled)):
        parts = count * accumulate
        if size % parts:
            of = f"{count} processes" + (f" in {accumulate} pieces each" if accumulate > 1 else "")
            raise RunError(
                f"{name} is {size}, which is to be divided among {of}: not into equal parts. Use another number of "
                f"processes, or --set {name}={-(-size // parts) * parts}."
            )

"""The losses of a batch, in pieces that fit on a device, with gradients that are exchanged between ranks."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from debiaspl.algorithms import Algorithm, Batch, Models
from debiaspl.debias import ranks
from debiaspl.training.returned import check_losses


class Losses(nn.Module):
    """``losses(batch)``: the algorithm with its networks, in the one module that DistributedDataParallel wraps. The
    teacher is not part of it, because an average has no gradients to exchange."""

    def __init__(self, models: Models, algorithm: Algorithm) -> None:
        super().__init__()
        self.student, self.algorithm = models.student, algorithm
        self._models = models
        self._idle: list[nn.Parameter] | None = None

    def forward(self, batch: Batch | None) -> dict[str, Tensor]:
        """Named losses; without a batch, a loss of 0 that depends on every parameter."""
        if batch is None:
            return {"nothing": self._nothing(list(self.parameters()))}
        correction = self.algorithm.correction
        if correction.looks:
            correction.look(self._models.teacher, batch.labeled, batch.progress)
        losses = self.algorithm.losses(self._models, batch)
        check_losses(self.algorithm, losses)
        if ranks.count() == 1:
            return losses
        if self._idle is None:
            parameters = [parameter for parameter in self.parameters() if parameter.requires_grad]
            total = torch.stack(list(losses.values())).sum()
            gradients = torch.autograd.grad(total, parameters, retain_graph=True, allow_unused=True)
            self._idle = [one for one, gradient in zip(parameters, gradients, strict=True) if gradient is None]
        if self._idle:
            # DistributedDataParallel waits for a gradient of every parameter, even if no loss depends on it.
            name = next(iter(losses))
            losses = {**losses, name: losses[name] + self._nothing(self._idle)}
        return losses

    @staticmethod
    def _nothing(parameters: list[nn.Parameter]) -> Tensor:
        return torch.stack([parameter.sum().to(torch.get_default_dtype()) for parameter in parameters]).sum() * 0


def exchanged(losses: Losses) -> nn.Module:
    """With several ranks, a module whose gradients are the mean over all of them."""
    if ranks.count() == 1:
        return losses
    # Buffers are combined where they are updated; broadcasting them would keep only those of the first rank.
    newer = "forward_sync_buffers" in signature(DistributedDataParallel).parameters
    keep_buffers: dict[str, Any] = {"forward_sync_buffers" if newer else "broadcast_buffers": False}
    module = DistributedDataParallel(losses, **keep_buffers)
    # After its first pass it groups gradients again, in the order in which they arrived, and sums depend on the
    # grouping: without an empty pass a resumed run would begin with other sums than one that was never stopped.
    module(None)["nothing"].backward()
    return module


def no_sync(losses: nn.Module, later: bool) -> AbstractContextManager[None]:
    """Context in which, if ``later``, gradients stay on their rank: the next exchange sends their sum."""
    return losses.no_sync() if later and isinstance(losses, DistributedDataParallel) else nullcontext()


def pieces(batch: Batch, truth: Tensor, count: int) -> Iterator[tuple[Batch, Tensor]]:
    """``count`` equal parts of a batch, with the true labels of their unlabeled images."""
    if count == 1:
        yield batch, truth
        return
    for number in range(count):

        def part(rows: Tensor, number: int = number) -> Tensor:
            return rows.tensor_split(count)[number]

        parts: dict[str, Any] = {name: part(getattr(batch, name)) for name in ("labeled", "labels", "positions")}
        for name in ("weak", "strong", "labeled_strong"):
            parts[name] = tuple(map(part, getattr(batch, name)))
        yield replace(batch, **parts), part(truth)

"""The program of a step: its inputs, its losses in pieces and over ranks, and its recording on a GPU."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from debiaspl.algorithms import Algorithm, Batch, Models
from debiaspl.data import Drawn
from debiaspl.debias import ranks
from debiaspl.training.build import check_losses
from debiaspl.training.process import RunError

EAGER = 3
"""Calls before the recording. They compile kernels and allocate what is made once."""
EAGER_RANKS = 11
"""The same, if several ranks exchange gradients."""


class Inputs:
    """The number of the step, its schedule values, and its images."""

    def __init__(self, labeled: int, unlabeled: int, device: torch.device) -> None:
        # One tensor and one copy per step; float64 stores a position exactly.
        exact = torch.float32 if device.type == "mps" else torch.float64  # MPS has no float64
        self._all = torch.zeros(3 + labeled + unlabeled, dtype=exact, device=device)
        self._labeled = labeled
        self._pictures: dict[str, tuple[Tensor, ...]] = {}

    def set(self, number: int, progress: float, rate: float, labeled: Drawn, unlabeled: Drawn | None) -> None:
        """Set the inputs of the next step. Nothing waits for the device."""
        drawn = [labeled] if unlabeled is None else [labeled, unlabeled]
        schedule = torch.tensor([number, progress, rate], dtype=torch.float64)
        message = torch.cat([schedule, *(part.positions.double() for part in drawn)])
        there = self._all[: len(message)]
        if there.is_cuda:
            message = message.pin_memory()
        there.copy_(message.to(there.dtype), non_blocking=True)
        for name, part in zip(("labeled", "unlabeled"), drawn, strict=False):
            if name not in self._pictures:
                self._pictures[name] = tuple(map(torch.empty_like, part.pictures))
            for own, picture in zip(self._pictures[name], part.pictures, strict=True):
                own.copy_(picture)  # from the same device: a feed has put the pictures there

    @property
    def number(self) -> Tensor:
        return self._all[0].long()

    @property
    def progress(self) -> Tensor:
        return self._all[1].float()

    @property
    def rate(self) -> Tensor:
        return self._all[2]

    def positions(self, name: str) -> Tensor:
        """Positions of the ``labeled`` or the ``unlabeled`` images."""
        part = self._all[3 : 3 + self._labeled] if name == "labeled" else self._all[3 + self._labeled :]
        return part.long()

    def pictures(self, name: str) -> tuple[Tensor, ...]:
        """Pictures that came with their positions; empty if they are looked up."""
        return self._pictures[name]


class Recording:
    """``recording(program)`` runs the program. The first calls run it directly; a later one records it.

    The program must do the same operations on the same tensors each time, and must not wait for the device. A replay
    runs the same kernels, and advances ``generator`` as the program would: the result is the same.
    """

    def __init__(self, generator: torch.Generator, several_ranks: bool = False) -> None:
        self.generator = generator
        # DistributedDataParallel decides in its first ten steps how it sends gradients, and threads that watch the
        # network may access the device during the recording.
        self._several = several_ranks
        self._eager = EAGER_RANKS if several_ranks else EAGER
        self.forget()

    def forget(self) -> None:
        """Record again, because the program uses other tensors now."""
        self._graph: torch.cuda.CUDAGraph | None = None
        self._calls = 0

    def __call__(self, program: Callable[[], None]) -> None:
        if self._graph is None and self._calls >= self._eager:
            self._graph = self._record(program)
        if self._graph is None:
            program()
        else:
            self._graph.replay()
        self._calls += 1

    def _record(self, program: Callable[[], None]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        try:
            # With several ranks the step has its own stream from the start, which is also recorded.
            stream = torch.cuda.current_stream() if self._several else None
            errors = "thread_local" if self._several else "global"
            with torch.cuda.graph(graph, stream=stream, capture_error_mode=errors):
                program()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise RunError(
                f"the step cannot be recorded as a CUDA graph: {error}. losses() must not wait; or use --eager."
            ) from error
        return graph


class Losses(nn.Module):
    """``losses(batch)``: what DistributedDataParallel wraps. The teacher is not part of it, because an average has no
    gradients to exchange."""

    def __init__(self, models: Models, algorithm: Algorithm) -> None:
        super().__init__()
        self.student, self.algorithm = models.student, algorithm
        self._models = models
        self._idle: list[nn.Parameter] | None = None

    def forward(self, batch: Batch | None) -> dict[str, Tensor]:
        """Named losses; without a batch, a loss of 0 that depends on every parameter."""
        if batch is None:
            return {"nothing": self._nothing(list(self.parameters()))}
        self.algorithm.correction.look(self._models.teacher, batch.labeled, batch.progress)
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
    """Context in which, if ``later``, gradients stay on their rank until the next exchange."""
    return losses.no_sync() if later and isinstance(losses, DistributedDataParallel) else nullcontext()


def pieces(batch: Batch, truth: Tensor, count: int) -> Iterator[tuple[Batch, Tensor]]:
    """``count`` equal parts of a batch, with the true labels of their unlabeled images."""
    if count == 1:
        yield batch, truth
        return
    for number in range(count):
        first, every = ("labeled", "labels", "positions"), ("weak", "strong", "labeled_strong")
        parts: dict[str, Any] = {name: getattr(batch, name).tensor_split(count)[number] for name in first}
        parts |= {name: tuple(rows.tensor_split(count)[number] for rows in getattr(batch, name)) for name in every}
        yield replace(batch, **parts), truth.tensor_split(count)[number]

"""A step on a GPU is recorded once and replayed: a thousand kernels for the cost of one launch. Its inputs keep their
places in memory."""

from collections.abc import Callable

import torch
from torch import Tensor

from debiaspl.data import Drawn
from debiaspl.training.errors import RunError

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

    Recording itself runs nothing, and a replay runs the same kernels on the same tensors as the program. So the result
    does not depend on which calls were replayed, and nothing has to be restored.

    The program must do the same operations on the same tensors each time, and must not wait for the device. Random
    numbers come from ``generator``, whose state a replay advances as the program would.
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
                f"the step cannot be recorded as a CUDA graph: {error}. An algorithm must not wait for the device "
                "(.item(), printing a tensor, boolean indexing) or make tensors from Python numbers inside losses(). "
                "Until this is fixed, train with --eager: the same bits, but slower."
            ) from error
        return graph

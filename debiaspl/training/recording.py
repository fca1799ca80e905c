"""A program on a GPU, recorded once and replayed: a thousand kernels for the price of one launch."""

from collections.abc import Callable

import torch

from debiaspl.training.errors import RunError

EAGER = 3
"""Calls before the recording. They compile what is compiled when first needed, and make what is made once."""
EAGER_RANKS = 11
"""The same, where several ranks exchange gradients."""


class Recording:
    """``recording(program)`` does what the program does. The first calls run it as it is; a later one records it.

    Recording runs nothing, and a replay is the same kernels on the same tensors as the program itself, so that it does
    not matter for the result which of the calls was which: nothing has to be restored.

    The program must do the same operations on the same tensors each time, and must not wait for the device. Random
    numbers come from ``generator``, whose place a replay moves as the program would.
    """

    def __init__(self, generator: torch.Generator, several_ranks: bool = False) -> None:
        self.generator = generator
        # DistributedDataParallel settles on how it sends gradients in its first ten steps, and threads that watch over
        # the network may look at the device while it is being recorded.
        self._several = several_ranks
        self._eager = EAGER_RANKS if several_ranks else EAGER
        self.forget()

    def forget(self) -> None:
        """Record again: the tensors that the program uses are others now."""
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
            # With several ranks the step runs on a stream of its own from the first: the same one is recorded.
            stream = torch.cuda.current_stream() if self._several else None
            errors = "thread_local" if self._several else "global"
            with torch.cuda.graph(graph, stream=stream, capture_error_mode=errors):
                program()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise RunError(
                f"the step cannot be recorded as a CUDA graph: {error}. An algorithm must not wait for the device "
                "(.item(), printing a tensor, boolean indexing) nor make tensors from Python numbers inside losses(). "
                "Until it does not, train with --eager: the same bits, more slowly."
            ) from error
        return graph

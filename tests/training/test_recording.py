"""What can be said of a recorded program without a GPU; the rest is in test_gpu.py."""

from contextlib import contextmanager

import pytest
import torch

from debiaspl.training import RunError
from debiaspl.training.program import EAGER, Recording


class FakeGraph:
    """Counts replays, and records nothing."""

    def __init__(self) -> None:
        self.replays, self.generators = 0, []

    def register_generator_state(self, generator: torch.Generator) -> None:
        self.generators.append(generator)

    def replay(self) -> None:
        self.replays += 1


@pytest.fixture
def graphs(monkeypatch):
    made: list[FakeGraph] = []

    def make() -> FakeGraph:
        made.append(FakeGraph())
        return made[-1]

    @contextmanager
    def recording(graph, stream, capture_error_mode):
        yield

    monkeypatch.setattr(torch.cuda, "CUDAGraph", make)
    monkeypatch.setattr(torch.cuda, "graph", recording)
    return made


def test_the_first_calls_run_then_one_is_recorded_and_replayed_until_it_is_forgotten(graphs):
    calls, generator = [], torch.Generator()
    recording = Recording(generator)
    for number in (1, 2):
        for _ in range(EAGER + 4):
            recording(lambda: calls.append(1))
        assert len(calls) == number * (EAGER + 1)  # one is the recording, which executes nothing on a GPU
        assert [graph.replays for graph in graphs] == number * [4]
        recording.forget()
    assert graphs[0].generators == [generator]


def test_a_program_that_cannot_be_recorded_says_what_to_do(graphs):
    calls = []

    def program():
        calls.append(1)
        if len(calls) > EAGER:
            raise RuntimeError("operation not permitted when stream is capturing")

    recording = Recording(torch.Generator())
    for _ in range(EAGER):
        recording(program)
    with pytest.raises(RunError, match=r"not permitted.*--eager"):
        recording(program)

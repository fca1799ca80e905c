"""What a recorded step needs, without a GPU: the same operations on the same places in memory, none that waits."""

from contextlib import contextmanager

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from debiaspl.data import FewLabels, Task, load
from debiaspl.debias import CORRECTIONS
from debiaspl.training import RunError
from debiaspl.training.program import EAGER, Recording
from debiaspl.training.step import Step
from tests.training.test_every_algorithm import EVERY, recipe_of


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


aten = torch.ops.aten
WAITING = {
    aten._local_scalar_dense.default,  # .item(), float(), bool(), if
    *(aten.nonzero.default, aten.masked_select.default, aten._unique2.default, aten.equal.default),
    aten.lift_fresh.default,  # torch.tensor([...]): a copy from the host
}


class Watch(TorchDispatchMode):
    """The operations, their shapes, and those that a recording could not hold."""

    def __init__(self):
        super().__init__()
        self.operations, self.waiting = [], []

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
        by_mask = function is aten.index.Tensor and any(
            index is not None and index.dtype == torch.bool for index in arguments[1]
        )
        if function in WAITING or by_mask:
            self.waiting.append(str(function))
        self.operations.append((str(function), *(tuple(one.shape) for one in tensors)))
        return function(*arguments, **(named or {}))


def watched(step, number):
    """The operations of losses, gradients and the update; views have code of their own for a CPU."""
    watch, add_gradient, update = Watch(), step._add_gradient, step.update.step

    def watched_gradient(*arguments, **named):
        with watch:
            add_gradient(*arguments, **named)

    def watched_update(rate):
        with watch:
            update(step.inputs.rate)  # a tensor, as on a GPU

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "_add_gradient", watched_gradient)
        patch.setattr(step.update, "step", watched_update)
        step(number)
    return watch


def one_hot(classes, number):
    """torch's own looks at its numbers on a CPU alone."""
    return torch.zeros(*classes.shape, number, dtype=torch.int64).scatter(-1, classes[..., None], 1)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *((name, ()) for name in EVERY),
        *(("fixmatch", (f"correction={name}",)) for name in CORRECTIONS),
        ("fixmatch", ("correction=debiaser", "target=estimated", "count_threshold=0")),
        ("fixmatch", ("correction=debiaser", "optimizer=adamw", "clip=1", "layer_decay=0.5")),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value),
)
def test_a_step_can_be_recorded(monkeypatch, name, settings):
    monkeypatch.setattr(F, "one_hot", one_hot)
    step = Step(recipe_of(name, *settings), Task.of(load("digits"), FewLabels(1), seed=0), torch.device("cpu"))
    for number in range(3):
        step(number)
    before = {key: value.data_ptr() for key, value in step.state().items()}
    first, second = watched(step, 3), watched(step, 4)
    assert first.waiting == []
    assert first.operations == second.operations
    # Not part of a recording: the generator's state, and what a new generation sets.
    after = {key: value.data_ptr() for key, value in step.state().items() if key not in ("generator", "adopted")}
    assert [key for key in after if after[key] != before[key]] == []

"""The process of a run: its device and precision, requests to stop, and what is left of an error in a group."""

import signal
import weakref

import pytest
import torch

from debiaspl import kernels
from debiaspl.data import FewLabels, Task, load
from debiaspl.training import step
from debiaspl.training.group import _forget_locals
from debiaspl.training.process import RunError, find_device, stop_requests
from tests.training.tiny import EAGER


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_under_torchrun_both_are_noted(number):
    with stop_requests(again=True) as asked:
        assert asked() == 0
        signal.raise_signal(number)
        signal.raise_signal(number)
        assert asked() == number


def test_the_second_one_acts():
    with stop_requests() as asked:
        signal.raise_signal(signal.SIGINT)
        assert asked() == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def machine(monkeypatch):
    """A machine with so many GPUs."""

    def made(gpus):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)

    return made


@pytest.mark.parametrize(
    ("gpus", "name", "found"),
    [(0, None, "cpu"), (0, "cpu", "cpu"), (2, None, "cuda"), (2, "cpu", "cpu"), (2, "cuda", "cuda")],
)
def test_what_is_here_is_taken(gpus, name, found, machine):
    machine(gpus)
    assert find_device(name) == torch.device(found)


@pytest.mark.parametrize(
    ("gpus", "name", "told"),
    [
        (0, "cuda", "no usable GPU"),
        (0, "", "expected"),
        (2, "mps", "cpu or cuda"),
        (2, "cuda:1", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_another_device_is_refused_with_what_to_type(gpus, name, told, machine):
    machine(gpus)
    with pytest.raises(RunError, match=told):
        find_device(name)


def test_mps_is_taken_where_it_is_named(monkeypatch, machine):
    machine(0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_device("mps") == torch.device("mps")
    assert find_device(None) == torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "capability", "dtype"),
    [
        ("cpu", (0, 0), torch.float32),
        ("mps", (0, 0), torch.float32),
        ("cuda", (7, 0), torch.float16),
        ("cuda", (7, 5), torch.float16),
        ("cuda", (8, 0), torch.bfloat16),
        ("cuda", (9, 0), torch.bfloat16),
    ],
)
def test_precision_is_what_the_gpu_can_or_what_is_asked_for(monkeypatch, name, capability, dtype):
    """V100 and T4 compute in float16, step by step, without Triton; A100 and later in bfloat16, recorded."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(kernels, "find_spec", lambda name: object())
    device, works = torch.device(name), dtype == torch.bfloat16
    assert kernels.precision(device) == dtype
    assert [kernels.precision(device, wanted) for wanted in ("float16", "float32")] == [torch.float16, torch.float32]
    if not works:
        with pytest.raises(ValueError, match="precision"):
            kernels.precision(device, "bfloat16")
    if name == "cuda":
        assert kernels.triton_works.__wrapped__() == works


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_step_follows_the_precision(monkeypatch, dtype):
    """Pretended on a CPU, which can autocast too."""
    monkeypatch.setattr(step, "precision", lambda device, wanted: dtype)
    task = Task.of(load("digits"), FewLabels(1), seed=0)
    made = step.Step(EAGER, task, torch.device("cpu"), record=False)
    copied, computed = dtype == torch.bfloat16, set()
    made.student.head.register_forward_hook(lambda module, inputs, logits: computed.add(logits.dtype))
    made(0)
    assert computed == {dtype}
    gradients = {group.gradients.dtype for group in made.update.groups}
    assert gradients == ({torch.bfloat16, torch.float32} if copied else {torch.float32})
    assert made.views.dtype == (torch.bfloat16 if copied else None)
    assert all(
        value.dtype == torch.float32
        for value in made.update.exact_state(made.student).values()
        if value.is_floating_point()
    )


class Held:
    pass


def fail(held: list, error: Exception, behind: Exception | None = None) -> None:
    own = Held()
    held.append(weakref.ref(own))
    if behind is None:
        raise error
    raise error from behind


def test_an_error_and_those_behind_it_hold_nothing_any_more():
    held: list = []

    def cause():
        try:
            fail(held, ValueError("first"))
        except ValueError as error:
            fail(held, KeyError("second"), behind=error)

    def context():
        try:
            cause()
        except KeyError:
            fail(held, RuntimeError("third"), behind=OSError("another"))

    with pytest.raises(RuntimeError, match="third") as caught:
        context()
    assert all(one() is not None for one in held)
    _forget_locals(caught.value, None)
    assert [one() for one in held] == [None] * 3
    assert caught.traceback[-1].name == "fail"


def test_errors_in_a_ring_and_errors_of_the_caller():
    held: list = []
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__context__ = second, first
    _forget_locals(first, None)  # ends
    with pytest.raises(OSError, match="own") as callers:
        fail(held, OSError("the caller's own"))
    first.__context__ = callers.value
    _forget_locals(first, callers.value)
    assert held[0]() is not None

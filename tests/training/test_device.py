"""Where to compute: what is said to somebody who named a device that is not here."""

import pytest
import torch

from debiaspl.training.device import find_device
from debiaspl.training.errors import RunError


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
        (0, "", "expected cpu"),
        (2, "mps", "cpu or cuda"),
        (2, "cuda:1", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_another_device_is_refused_with_what_to_type(gpus, name, told, machine):
    machine(gpus)
    with pytest.raises(RunError, match=told):
        find_device(name)

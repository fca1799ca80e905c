"""Where to compute: what is said to somebody who named a device that is not here."""

import pytest
import torch

from debiaspl.training.device import find_device
from debiaspl.training.errors import RunError

NO_GPU = "PyTorch finds a CPU here and no usable GPU. Use --device cpu, or leave it out."
TWO_GPUS = "PyTorch finds 2 GPUs here (Fast 1)."


@pytest.fixture
def machine(monkeypatch):
    """A machine with so many GPUs, and a PyTorch built for this CUDA."""

    def made(gpus, built="12.8", hidden=None):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: "Fast 1")
        monkeypatch.setattr(torch.version, "cuda", built)
        monkeypatch.setattr(torch.version, "hip", None)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if hidden is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)

    return made


@pytest.mark.parametrize(
    ("gpus", "name", "found"),
    [(0, None, "cpu"), (0, "cpu", "cpu"), (2, None, "cuda"), (2, "cpu", "cpu"), (2, "cuda", "cuda")],
)
def test_what_is_here_is_taken(gpus, name, found, machine):
    machine(gpus)
    assert find_device(name) == torch.device(found)


@pytest.mark.parametrize("name", ["cuda", "gpu", "GPU", "cuda:7", "mps", "nonsense", ""])
def test_without_a_gpu(name, machine):
    machine(0, built=None)
    with pytest.raises(RunError) as refused:
        find_device(name)
    expected = "but" if name == "cuda" else "expected cuda or cpu, and"
    hint = " If this machine has a GPU: PyTorch" if name[:1] in "cGg" and name else ""
    assert str(refused.value).startswith(f"the device is {name!r}, {expected} {NO_GPU}{hint}")
    assert ("was built only for CPUs" in str(refused.value)) == bool(hint)

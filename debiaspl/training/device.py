"""Chooses the device."""

import torch

from debiaspl.training.errors import RunError


def find_device(name: str | None) -> torch.device:
    """The named device; by default ``cuda`` if available, otherwise ``cpu``. ``mps`` must be named: nothing was tested
    there."""
    if name == "mps" and torch.backends.mps.is_available():
        return torch.device(name)
    available = "cuda" if torch.cuda.is_available() else "cpu"
    if name not in (None, "cpu", available):
        hint = (
            "PyTorch finds no usable GPU: does nvidia-smi show one, and is this PyTorch built for it? Use --device cpu."
        )
        if available == "cuda":
            hint = "cuda is the first GPU; for another one, put CUDA_VISIBLE_DEVICES=NUMBER in front."
        raise RunError(f"the device is {name!r}, expected cpu or cuda. {hint}")
    return torch.device(name or available)

"""Chooses the device."""

import torch

from debiaspl.training.errors import RunError


def find_device(name: str | None) -> torch.device:
    """The named device; by default ``cuda`` if available, otherwise ``cpu``. ``mps`` must be named: nothing was tested
    there."""
    if name == "mps" and torch.backends.mps.is_available():
        return torch.device(name)
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name not in (None, "cpu", *(["cuda"] if gpus else [])):
        hint = "PyTorch finds no usable GPU. Does nvidia-smi show one, and is this PyTorch built for it?"
        if gpus:
            hint = f"cuda is the first of {gpus} GPUs; for another one, put CUDA_VISIBLE_DEVICES=NUMBER in front."
        raise RunError(f"the device is {name!r}, expected cpu{' or cuda' if gpus else ''}. {hint}")
    return torch.device(name or ("cuda" if gpus else "cpu"))

"""Chooses the device."""

import os
import re

import torch

from debiaspl.training.errors import RunError


def find_device(name: str | None) -> torch.device:
    """The named device; by default ``cuda`` if available, otherwise ``cpu``."""
    available = "cuda" if torch.cuda.is_available() else "cpu"
    if name is not None and name not in ("cpu", available):
        expected = "but" if name == "cuda" else "expected cuda or cpu, and"
        raise RunError(
            f"the device is {name!r}, {expected} {_what_is_there()} {_what_to_type(name.lower(), available)}"
        )
    return torch.device(name or available)


def _what_is_there() -> str:
    if not torch.cuda.is_available():
        return "PyTorch finds a CPU here and no usable GPU."
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return f"PyTorch finds {len(names)} GPU{'s' if len(names) > 1 else ''} here ({', '.join(sorted(set(names)))})."


def _what_to_type(name: str, available: str) -> str:
    if available == "cpu":
        return "Use --device cpu, or leave it out." + (_why_no_gpu() if name.startswith(("cuda", "gpu")) else "")
    numbered = re.fullmatch(r"(?:cuda|gpu):?(\d+)", name)
    if numbered is None:
        return "Use --device cuda, which is the first GPU, or --device cpu."
    which = int(numbered[1])
    if which >= torch.cuda.device_count():
        return f"They are numbered from 0, and there is no {which}. Use --device cuda, which is the first one."
    return f"Use --device cuda; to select this GPU, put CUDA_VISIBLE_DEVICES={which} in front of the command."


def _why_no_gpu() -> str:
    """Common reasons why a GPU is not found."""
    if torch.version.cuda is None and torch.version.hip is None:
        return (
            f" If this machine has a GPU: PyTorch {torch.__version__} was built only for CPUs. See its installation "
            "page for GPU versions."
        )
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return f" If this machine has a GPU: CUDA_VISIBLE_DEVICES is {hidden!r}, which may hide it. Unset it."
    return " If this machine has a GPU: does nvidia-smi show it, and is its driver as new as PyTorch expects?"

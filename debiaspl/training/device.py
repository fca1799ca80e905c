"""Chooses the device."""

import os
import re

import torch

from debiaspl.training.errors import RunError


def find_device(name: str | None) -> torch.device:
    """The named device; by default ``cuda`` if available, otherwise ``cpu``."""
    available = "cuda" if torch.cuda.is_available() else "cpu"
    if name is not None and name not in ("cpu", available):
        hint = _gpu_hint(name.lower()) if available == "cuda" else _cpu_hint(name.lower())
        raise RunError(f"the device is {name!r}, expected cuda or cpu. {hint}")
    return torch.device(name or available)


def _gpu_hint(name: str) -> str:
    count = torch.cuda.device_count()
    names = ", ".join(sorted({torch.cuda.get_device_name(number) for number in range(count)}))
    numbered = re.fullmatch(r"(?:cuda|gpu):?(\d+)", name)
    if numbered is not None and int(numbered[1]) < count:
        select = f"put CUDA_VISIBLE_DEVICES={numbered[1]} in front of the command"
        return f"Use --device cuda; to select this GPU, {select}."
    return f"Use --device cuda, which is the first of {count} GPUs ({names}), or --device cpu."


def _cpu_hint(name: str) -> str:
    """What to type without a GPU, and a common reason why one is not found."""
    hint = "PyTorch finds no usable GPU here. Use --device cpu, or leave it out."
    if not name.startswith(("cuda", "gpu")):
        return hint
    if torch.version.cuda is None and torch.version.hip is None:
        return f"{hint} PyTorch {torch.__version__} was built only for CPUs; its installation page has GPU versions."
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return f"{hint} CUDA_VISIBLE_DEVICES is {hidden!r}, which may hide it: unset it."
    return f"{hint} Does nvidia-smi show it, and is its driver as new as PyTorch expects?"

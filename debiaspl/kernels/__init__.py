"""Fused GPU kernels, loaded when a tensor on a GPU needs them. Each has a version in plain torch, its reference."""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

LARGEST = 4096
"""Largest number of pixels of a channel that the kernels for views support: 64 x 64."""
PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
BFLOAT16 = (8, 0)
"""Compute capability from which a GPU computes in bfloat16, and Triton supports it: A100, not V100 or T4."""


def bfloat16_works(device: torch.device) -> bool:
    """Whether the device computes in bfloat16 as fast as in float16."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= BFLOAT16


def precision(device: torch.device, wanted: str = "auto") -> torch.dtype:
    """What a step computes in. In bfloat16 it is recorded; otherwise it is computed operation by operation."""
    bfloat16 = bfloat16_works(device)
    if wanted == "bfloat16" and not bfloat16:
        raise ValueError(f"precision is bfloat16, which this {device.type} device cannot. Use precision=auto.")
    if wanted == "auto":
        wanted = "bfloat16" if bfloat16 else "float16" if device.type == "cuda" else "float32"
    return PRECISIONS[wanted]


@cache
def triton_works() -> bool:
    """Whether Triton is installed (it comes with torch's GPU builds) and supports the GPU."""
    return find_spec("triton") is not None and bfloat16_works(torch.device("cuda"))


def holds(images: Tensor) -> bool:
    """Whether the kernels for views support these images."""
    return images.is_cuda and images.shape[2] * images.shape[3] <= LARGEST and triton_works()

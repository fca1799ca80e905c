"""Fused GPU kernels. Each has a version in plain torch, which runs elsewhere and is the reference in tests.

Triton kernels are imported when the first tensor on a GPU needs them, so a CPU never loads them.
"""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

LARGEST = 4096
"""Largest number of pixels of a channel that the kernels for views support: 64 x 64."""


BFLOAT16 = (8, 0)
"""Compute capability from which a GPU computes in bfloat16, and Triton supports it: A100, not V100 or T4."""


def bfloat16_works(device: torch.device) -> bool:
    """Whether a step computes in bfloat16 and is recorded. Elsewhere it computes in float32, operation by operation."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= BFLOAT16


@cache
def triton_works() -> bool:
    """Whether Triton is installed (it comes with torch's GPU builds) and supports the GPU."""
    return find_spec("triton") is not None and bfloat16_works(torch.device("cuda"))


def holds(images: Tensor) -> bool:
    """Whether the kernels for views support these images."""
    return images.is_cuda and images.shape[2] * images.shape[3] <= LARGEST and triton_works()

"""Fused GPU kernels. Each has a version in plain torch, which runs elsewhere and is the reference in tests.

Triton kernels are imported when the first tensor on a GPU needs them, so a CPU never loads them.
"""

from functools import cache
from importlib.util import find_spec

from torch import Tensor

LARGEST = 4096
"""Largest number of pixels of a channel that the kernels for views support: 64 x 64."""


@cache
def triton_works() -> bool:
    """Whether Triton is installed: it comes with torch's GPU builds."""
    return find_spec("triton") is not None


def holds(images: Tensor) -> bool:
    """Whether the kernels for views support these images."""
    return images.is_cuda and images.shape[2] * images.shape[3] <= LARGEST and triton_works()

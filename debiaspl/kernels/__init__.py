"""Fused kernels for a GPU. Each has a twin in plain torch, which is what runs elsewhere and what it is tested against.

A kernel of Triton is imported when the first tensor that needs it lies on a GPU; a CPU never pays for it.
"""

from functools import cache
from importlib.util import find_spec

from torch import Tensor

LARGEST = 4096
"""Pixels of a channel that one program of a kernel for views holds: 64 x 64."""


@cache
def triton_works() -> bool:
    """Whether Triton is installed: it comes with torch's builds for a GPU."""
    return find_spec("triton") is not None


def holds(images: Tensor) -> bool:
    """Whether the kernels for views take these images."""
    return images.is_cuda and images.shape[2] * images.shape[3] <= LARGEST and triton_works()

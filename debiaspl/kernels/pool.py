"""Max-pooling of two by two pixels."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.kernels import triton_works

HELD = (torch.bfloat16, torch.float16, torch.float32)
"""Dtypes that the kernel compares as float32, which keeps the order of all three."""


def max_pool(features: Tensor) -> Tensor:
    """``F.max_pool2d(features, 2)`` and its gradient, bit for bit as on a CPU.

    On a GPU one byte per output stores which pixel it was, while torch stores an index of eight bytes and the features.
    It has no second derivative.
    """
    return fused(features) if _fits(features) else F.max_pool2d(features, 2)


def fused(features: Tensor) -> Tensor:
    from debiaspl.kernels import pool_triton

    if not (torch.is_grad_enabled() and features.requires_grad):
        largest: Tensor = pool_triton.apply(features)
        return largest
    pooled: Tensor = pool_triton.MaxPool.apply(features)  # type: ignore[no-untyped-call]
    return pooled


def _fits(features: Tensor) -> bool:
    return (
        features.is_cuda
        and triton_works()
        and features.dtype in HELD
        and features.ndim == 4
        and features.shape[2] % 2 == 0
        and features.shape[3] % 2 == 0
        and features.is_contiguous(memory_format=torch.channels_last)
        and not features.is_contiguous()  # one channel is both: torch then returns the usual layout
    )

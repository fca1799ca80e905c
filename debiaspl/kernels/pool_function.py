"""The max-pooling kernels as one differentiable operation."""

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from debiaspl.kernels import pool_triton as kernels

WARPS = 8
TILE = 16 * 32 * WARPS
"""Bytes of a program's outputs: 16 per thread, the most that one load can take. With more, Triton would give a thread
as many outputs as fit in 16 bytes of choices, and reorder them for each store."""
WIDEST = 512
"""Channels in a tile; more are split."""


def _plan(pooled: Tensor) -> tuple[tuple[int, int], tuple[int, int], dict[str, int]]:
    """Number of programs, sizes, and compile-time constants."""
    images, channels, rows, columns = pooled.shape
    pixels, width = images * rows * columns, min(triton.next_power_of_2(channels), WIDEST)
    height = TILE // (pooled.element_size() * width)
    known = {"channels": channels, "width": width, "height": height, "num_warps": WARPS}
    return (triton.cdiv(pixels, height), triton.cdiv(channels, width)), (pixels, columns), known


def _pool(features: Tensor, keeps: bool) -> tuple[Tensor, Tensor | None]:
    images, channels, height, width = features.shape
    shape = (images, channels, height // 2, width // 2)
    pooled = torch.empty(shape, dtype=features.dtype, device=features.device, memory_format=torch.channels_last)
    choices = torch.empty_like(pooled, dtype=torch.uint8) if keeps else None
    programs, sizes, known = _plan(pooled)
    kernels.pool[programs](features, pooled, choices, *sizes, **known, keeps=keeps)
    return pooled, choices


class MaxPool(torch.autograd.Function):
    """Stores one byte per output for the backward pass, and not the features."""

    @staticmethod
    def forward(ctx, features):
        pooled, choices = _pool(features, keeps=True)
        ctx.save_for_backward(choices)
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (choices,) = ctx.saved_tensors
        images, channels, height, width = choices.shape
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        shape = (images, channels, 2 * height, 2 * width)
        result = torch.empty(shape, dtype=gradient.dtype, device=gradient.device, memory_format=torch.channels_last)
        programs, sizes, known = _plan(gradient)
        kernels.gradient[programs](gradient, choices, result, *sizes, **known)
        return result


def apply(features: Tensor) -> Tensor:
    """Max-pooling without gradients."""
    return _pool(features, keeps=False)[0]

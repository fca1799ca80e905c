"""Max-pooling of two by two pixels in Triton, forward and backward.

A channels-last tensor is a matrix here, with a row per pixel and a column per channel. A program takes a range of
output pixels and some channels, so that neighbouring threads read and write neighbouring bytes. Windows do not overlap:
the gradient of each pixel is written by one program, without atomics.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

WARPS = 8
TILE = 16 * 32 * WARPS
"""Bytes of a program's outputs: 16 per thread, the most that one load can take. With more, Triton would give a thread
as many outputs as fit in 16 bytes of choices, and reorder them for each store."""
WIDEST = 512
"""Channels in a tile; more are split."""


@triton.jit
def _places(pixels, columns, channels: tl.constexpr, width: tl.constexpr, height: tl.constexpr):
    """Positions of a program's outputs, and of the upper left pixels of their windows; columns are of the output."""
    pixel = tl.program_id(0) * height + tl.arange(0, height)[:, None]
    channel = tl.program_id(1) * width + tl.arange(0, width)[None, :]
    # Every output row corresponds to two rows of twice its width: 4 columns * row + 2 column.
    corner = 2 * (pixel + pixel // columns * columns).to(tl.int64)
    there = (pixel < pixels) & (channel < channels)
    return pixel.to(tl.int64) * channels + channel, corner * channels + channel, there


@triton.jit
def _compare(largest, choice, value, number: tl.constexpr):
    """Compare pixels as torch does: of equal ones the first is chosen, of NaNs the last.

    Of four times minus infinity the first is chosen too, as on a CPU; torch's own channels-last kernel for a GPU then
    gives the gradient to none of them.
    """
    new = value.to(tl.float32)
    wins = (new > largest.to(tl.float32)) | (new != new)
    return tl.where(wins, value, largest), tl.where(wins, number, choice)


@triton.jit
def _pool(
    features,
    pooled,
    choices,
    pixels,
    columns,
    channels: tl.constexpr,
    width: tl.constexpr,
    height: tl.constexpr,
    keeps: tl.constexpr,
):
    """The largest of four pixels and, if stored, which of them it is: 0 to 3, row by row."""
    place, corner, there = _places(pixels, columns, channels, width, height)
    below = corner + 2 * columns * channels
    largest = tl.load(features + corner, mask=there, other=0.0)
    right = tl.load(features + corner + channels, mask=there, other=0.0)
    lower = tl.load(features + below, mask=there, other=0.0)
    last = tl.load(features + below + channels, mask=there, other=0.0)
    choice = tl.zeros((height, width), tl.int32)
    largest, choice = _compare(largest, choice, right, 1)
    largest, choice = _compare(largest, choice, lower, 2)
    largest, choice = _compare(largest, choice, last, 3)
    tl.store(pooled + place, largest, mask=there)
    if keeps:
        tl.store(choices + place, choice.to(tl.uint8), mask=there)


@triton.jit
def _gradient(
    gradients, choices, result, pixels, columns, channels: tl.constexpr, width: tl.constexpr, height: tl.constexpr
):
    """The chosen pixel gets the gradient of its window, the other three get zero."""
    place, corner, there = _places(pixels, columns, channels, width, height)
    below = corner + 2 * columns * channels
    value = tl.load(gradients + place, mask=there, other=0.0)
    choice = tl.load(choices + place, mask=there, other=0)
    nothing = tl.zeros((height, width), value.dtype)
    tl.store(result + corner, tl.where(choice == 0, value, nothing), mask=there)
    tl.store(result + corner + channels, tl.where(choice == 1, value, nothing), mask=there)
    tl.store(result + below, tl.where(choice == 2, value, nothing), mask=there)
    tl.store(result + below + channels, tl.where(choice == 3, value, nothing), mask=there)


def _plan(pooled: Tensor) -> tuple[tuple[int, int], tuple[int, int], dict[str, int]]:
    """Number of programs, sizes, and compile-time constants."""
    images, channels, rows, columns = pooled.shape
    pixels, width = images * rows * columns, min(triton.next_power_of_2(channels), WIDEST)
    height = TILE // (pooled.element_size() * width)
    known = {"channels": channels, "width": width, "height": height, "num_warps": WARPS}
    return (triton.cdiv(pixels, height), triton.cdiv(channels, width)), (pixels, columns), known


def _pooled(features: Tensor, keeps: bool) -> tuple[Tensor, Tensor | None]:
    images, channels, height, width = features.shape
    shape = (images, channels, height // 2, width // 2)
    pooled = torch.empty(shape, dtype=features.dtype, device=features.device, memory_format=torch.channels_last)
    choices = torch.empty_like(pooled, dtype=torch.uint8) if keeps else None
    programs, sizes, known = _plan(pooled)
    _pool[programs](features, pooled, choices, *sizes, **known, keeps=keeps)
    return pooled, choices


class MaxPool(torch.autograd.Function):
    """Stores one byte per output for the backward pass, and not the features."""

    @staticmethod
    def forward(ctx, features):
        pooled, choices = _pooled(features, keeps=True)
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
        _gradient[programs](gradient, choices, result, *sizes, **known)
        return result


def apply(features: Tensor) -> Tensor:
    """Max-pooling without gradients."""
    return _pooled(features, keeps=False)[0]

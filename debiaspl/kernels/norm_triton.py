"""Batch norm in Triton, fused with the sum before it and the activation after it, forward and backward.

A channels-last tensor is a matrix here, with a row per pixel and a column per channel. Each direction takes two passes:
one computes partial sums over the rows, one per program, the other does the rest, and a small kernel between them adds
the partial sums. Without atomics they are added in the same order every time, so the same inputs give the same bits.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

PROGRAMS = 264
"""Programs in a pass that sums: two per multiprocessor of a Hopper GPU; fewer for small inputs."""
TILE = 8192
"""Elements per program at a time: 32 per thread."""
WARPS = 8
SOME = 8
"""Channels whose partial sums one program adds."""


@triton.jit
def _add_parts(parts, programs, channels: tl.constexpr, some: tl.constexpr, many: tl.constexpr):
    """The two sums over rows for a few channels, from the partial sums of all programs."""
    column = tl.program_id(0) * some + tl.arange(0, some)
    row = tl.arange(0, many)[:, None]
    there = (row < programs) & (column[None, :] < channels)
    place = parts + row * 2 * channels + column[None, :]
    first = tl.sum(tl.load(place, mask=there, other=0.0), 0)
    second = tl.sum(tl.load(place + channels, mask=there, other=0.0), 0)
    return column, first, second


@triton.jit
def _statistics(
    features,
    inner,
    total,
    parts,
    rows,
    programs,
    channels: tl.constexpr,
    width: tl.constexpr,
    height: tl.constexpr,
    adds: tl.constexpr,
):
    """Sums of x and of x^2; x is features, or features + inner, which is then stored."""
    row, column = tl.arange(0, height)[:, None], tl.arange(0, width)[None, :]
    sums = tl.zeros((height, width), tl.float32)
    squares = tl.zeros((height, width), tl.float32)
    for start in range(tl.program_id(0) * height, rows, programs * height):
        there = (start + row < rows) & (column < channels)
        place = (start + row).to(tl.int64) * channels + column
        x = tl.load(features + place, mask=there, other=0.0).to(tl.float32)
        if adds:
            x += tl.load(inner + place, mask=there, other=0.0).to(tl.float32)
            kept = x.to(total.dtype.element_ty)
            tl.store(total + place, kept, mask=there)
            x = kept.to(tl.float32)
        sums += x
        squares += x * x
    flat = tl.arange(0, width)
    fits = flat < channels
    here = parts + tl.program_id(0) * 2 * channels + flat
    tl.store(here, tl.sum(sums, 0), mask=fits)
    tl.store(here + channels, tl.sum(squares, 0), mask=fits)


@triton.jit
def _finish_statistics(
    parts,
    running_mean,
    running_var,
    mean_kept,
    scale_kept,
    rows,
    programs,
    momentum,
    eps,
    channels: tl.constexpr,
    some: tl.constexpr,
    many: tl.constexpr,
):
    """Mean and 1 / deviation of every channel; the running statistics move towards them."""
    column, first, second = _add_parts(parts, programs, channels, some, many)
    fits = column < channels
    mean = first / rows
    variance = tl.maximum(second / rows - mean * mean, 0.0)
    tl.store(mean_kept + column, mean, mask=fits)
    tl.store(scale_kept + column, 1 / tl.sqrt(variance + eps), mask=fits)
    old_mean = tl.load(running_mean + column, mask=fits)
    old_variance = tl.load(running_var + column, mask=fits)
    unbiased = variance * rows / (rows - 1)
    tl.store(running_mean + column, old_mean + momentum * (mean - old_mean), mask=fits)
    tl.store(running_var + column, old_variance + momentum * (unbiased - old_variance), mask=fits)


@triton.jit
def _normalise(
    x,
    active,
    weight,
    bias,
    mean_kept,
    scale_kept,
    rows,
    slope,
    channels: tl.constexpr,
    width: tl.constexpr,
    height: tl.constexpr,
):
    flat, row = tl.arange(0, width), tl.program_id(0) * height + tl.arange(0, height)[:, None]
    fits = flat < channels
    factor = tl.load(scale_kept + flat, mask=fits) * tl.load(weight + flat, mask=fits)
    shift = tl.load(bias + flat, mask=fits) - tl.load(mean_kept + flat, mask=fits) * factor
    there = (row < rows) & fits[None, :]
    place = row.to(tl.int64) * channels + flat[None, :]
    z = tl.load(x + place, mask=there, other=0.0).to(tl.float32) * factor[None, :] + shift[None, :]
    tl.store(active + place, tl.where(z > 0, z, slope * z).to(active.dtype.element_ty), mask=there)


@triton.jit
def _gradient_sums(
    x,
    gradient,
    parts,
    weight,
    bias,
    mean_kept,
    scale_kept,
    rows,
    programs,
    slope,
    channels: tl.constexpr,
    width: tl.constexpr,
    height: tl.constexpr,
):
    """Sums of dz and dz x-hat, where z is the input of the activation."""
    row, column = tl.arange(0, height)[:, None], tl.arange(0, width)[None, :]
    flat = tl.arange(0, width)
    fits = flat < channels
    mean, scale = tl.load(mean_kept + flat, mask=fits), tl.load(scale_kept + flat, mask=fits)
    w, b = tl.load(weight + flat, mask=fits), tl.load(bias + flat, mask=fits)
    sums = tl.zeros((height, width), tl.float32)
    products = tl.zeros((height, width), tl.float32)
    for start in range(tl.program_id(0) * height, rows, programs * height):
        there = (start + row < rows) & (column < channels)
        place = (start + row).to(tl.int64) * channels + column
        hat = (tl.load(x + place, mask=there, other=0.0).to(tl.float32) - mean[None, :]) * scale[None, :]
        dz = tl.load(gradient + place, mask=there, other=0.0).to(tl.float32)
        dz = tl.where(hat * w[None, :] + b[None, :] > 0, dz, slope * dz)
        sums += dz
        products += dz * hat
    here = parts + tl.program_id(0) * 2 * channels + flat
    tl.store(here, tl.sum(sums, 0), mask=fits)
    tl.store(here + channels, tl.sum(products, 0), mask=fits)


@triton.jit
def _finish_gradient(
    parts, weight_gradient, bias_gradient, programs, channels: tl.constexpr, some: tl.constexpr, many: tl.constexpr
):
    """Final sums: the gradients of bias and weight."""
    column, first, second = _add_parts(parts, programs, channels, some, many)
    tl.store(bias_gradient + column, first, mask=column < channels)
    tl.store(weight_gradient + column, second, mask=column < channels)


@triton.jit
def _gradient(
    x,
    gradient,
    beside,
    result,
    weight,
    bias,
    mean_kept,
    scale_kept,
    weight_gradient,
    bias_gradient,
    rows,
    slope,
    channels: tl.constexpr,
    width: tl.constexpr,
    height: tl.constexpr,
    adds: tl.constexpr,
):
    """dx = w scale (dz - mean dz - x-hat mean(dz x-hat)), plus the gradient of x from its other use."""
    flat, row = tl.arange(0, width), tl.program_id(0) * height + tl.arange(0, height)[:, None]
    fits = flat < channels
    mean, scale = tl.load(mean_kept + flat, mask=fits), tl.load(scale_kept + flat, mask=fits)
    w, b = tl.load(weight + flat, mask=fits), tl.load(bias + flat, mask=fits)
    offset = tl.load(bias_gradient + flat, mask=fits) / rows
    slant = tl.load(weight_gradient + flat, mask=fits) / rows
    there = (row < rows) & fits[None, :]
    place = row.to(tl.int64) * channels + flat[None, :]
    hat = (tl.load(x + place, mask=there, other=0.0).to(tl.float32) - mean[None, :]) * scale[None, :]
    dz = tl.load(gradient + place, mask=there, other=0.0).to(tl.float32)
    dz = tl.where(hat * w[None, :] + b[None, :] > 0, dz, slope * dz)
    dx = (w * scale)[None, :] * (dz - offset[None, :] - hat * slant[None, :])
    if adds:
        dx += tl.load(beside + place, mask=there, other=0.0).to(tl.float32)
    tl.store(result + place, dx.to(result.dtype.element_ty), mask=there)


@triton.jit
def _apply(
    features,
    inner,
    total,
    active,
    weight,
    bias,
    running_mean,
    running_var,
    rows,
    eps,
    slope,
    channels: tl.constexpr,
    width: tl.constexpr,
    height: tl.constexpr,
    adds: tl.constexpr,
):
    """Eval mode: one pass with the running statistics."""
    flat, row = tl.arange(0, width), tl.program_id(0) * height + tl.arange(0, height)[:, None]
    fits = flat < channels
    factor = tl.load(weight + flat, mask=fits) / tl.sqrt(tl.load(running_var + flat, mask=fits, other=1.0) + eps)
    shift = tl.load(bias + flat, mask=fits) - tl.load(running_mean + flat, mask=fits) * factor
    there = (row < rows) & fits[None, :]
    place = row.to(tl.int64) * channels + flat[None, :]
    x = tl.load(features + place, mask=there, other=0.0).to(tl.float32)
    if adds:
        x += tl.load(inner + place, mask=there, other=0.0).to(tl.float32)
        kept = x.to(total.dtype.element_ty)
        tl.store(total + place, kept, mask=there)
        x = kept.to(tl.float32)
    z = x * factor[None, :] + shift[None, :]
    tl.store(active + place, tl.where(z > 0, z, slope * z).to(active.dtype.element_ty), mask=there)


class _Plan:
    """How a tensor is divided into tiles, and the constants of the kernels."""

    def __init__(self, x: Tensor) -> None:
        self.channels = x.shape[1]
        self.rows, width = x.numel() // self.channels, triton.next_power_of_2(self.channels)
        height = TILE // width
        self.tiles = triton.cdiv(self.rows, height)  # programs in a pass that does not sum
        self.programs = min(PROGRAMS, self.tiles)  # programs in a pass that sums
        self.groups = triton.cdiv(self.channels, SOME)  # programs of the kernel that adds the partial sums
        self.known = {"channels": self.channels, "width": width, "height": height, "num_warps": WARPS}
        many = triton.next_power_of_2(self.programs)
        self.finish = {"channels": self.channels, "some": SOME, "many": many, "num_warps": 4}


class NormActivate(torch.autograd.Function):
    """``(total, active)`` from ``features`` and, if given, ``inner``; running statistics are updated in place."""

    @staticmethod
    def forward(ctx, features, inner, weight, bias, running_mean, running_var, momentum, eps, slope):
        plan, adds = _Plan(features), inner is not None
        total, active = torch.empty_like(features) if adds else features, torch.empty_like(features)
        parts = features.new_empty((plan.programs, 2, plan.channels), dtype=torch.float32)
        mean, scale = torch.empty((2, plan.channels), dtype=torch.float32, device=features.device)
        sizes = (plan.rows, plan.programs)
        _statistics[(plan.programs,)](features, inner, total, parts, *sizes, adds=adds, **plan.known)
        learned = (running_mean, running_var, mean, scale)
        _finish_statistics[(plan.groups,)](parts, *learned, *sizes, momentum, eps, **plan.finish)
        _normalise[(plan.tiles,)](total, active, weight, bias, mean, scale, plan.rows, slope, **plan.known)
        ctx.save_for_backward(total, weight, bias, mean, scale)
        ctx.slope, ctx.adds = slope, adds
        ctx.set_materialize_grads(False)
        return (total if adds else features.view_as(features)), active

    @staticmethod
    def backward(ctx, beside, gradient):
        total, weight, bias, mean, scale = ctx.saved_tensors
        plan, adds = _Plan(total), beside is not None
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        beside = beside.contiguous(memory_format=torch.channels_last) if adds else None
        parts = total.new_empty((plan.programs, 2, plan.channels), dtype=torch.float32)
        kept, found = (weight, bias, mean, scale), (torch.empty_like(weight), torch.empty_like(bias))
        sizes = (plan.rows, plan.programs, ctx.slope)
        _gradient_sums[(plan.programs,)](total, gradient, parts, *kept, *sizes, **plan.known)
        _finish_gradient[(plan.groups,)](parts, *found, plan.programs, **plan.finish)
        result = torch.empty_like(total)
        spread = (total, gradient, beside, result, *kept, *found, plan.rows, ctx.slope)
        _gradient[(plan.tiles,)](*spread, adds=adds, **plan.known)
        return result, (result if ctx.adds else None), *found, None, None, None, None, None


def apply(
    features: Tensor, inner: Tensor | None, learned: tuple[Tensor, ...], eps: float, slope: float
) -> tuple[Tensor, Tensor]:
    """``(total, active)`` in eval mode, without gradients."""
    plan, adds = _Plan(features), inner is not None
    total, active = torch.empty_like(features) if adds else features, torch.empty_like(features)
    given = (features, inner, total, active, *learned, plan.rows, eps, slope)
    _apply[(plan.tiles,)](*given, adds=adds, **plan.known)
    return total, active

"""Batch norm in Triton, fused with the sum before it and the activation after it, forward and backward.

A channels-last tensor is a matrix here, with a row per pixel and a column per channel. Each direction takes two passes:
one computes partial sums over the rows, one per program, the other does the rest, and a small kernel between them adds
the partial sums. Without atomics they are added in the same order every time, so the same inputs give the same bits.
"""

import triton
import triton.language as tl


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
def statistics(
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
def finish_statistics(
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
def normalise(
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
def gradient_sums(
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
def finish_gradient(
    parts, weight_gradient, bias_gradient, programs, channels: tl.constexpr, some: tl.constexpr, many: tl.constexpr
):
    """Final sums: the gradients of bias and weight."""
    column, first, second = _add_parts(parts, programs, channels, some, many)
    tl.store(bias_gradient + column, first, mask=column < channels)
    tl.store(weight_gradient + column, second, mask=column < channels)


@triton.jit
def gradient(
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
def apply(
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

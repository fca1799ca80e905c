"""SGD, weight averaging and the half-precision copy of the weights, in one pass over flat tensors."""

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 2048
WARPS = 8


@triton.jit
def _update(
    values,
    gradients,
    velocities,
    average,
    work,
    rate,
    size,
    weight_decay,
    momentum,
    one_minus_decay,
    averages: tl.constexpr,
    copies: tl.constexpr,
    block: tl.constexpr,
):
    place = tl.program_id(0) * block + tl.arange(0, block)
    there = place < size
    value = tl.load(values + place, mask=there)
    gradient = tl.load(gradients + place, mask=there).to(tl.float32) + weight_decay * value
    velocity = momentum * tl.load(velocities + place, mask=there) + gradient
    value -= tl.load(rate).to(tl.float32) * (gradient + momentum * velocity)
    tl.store(velocities + place, velocity, mask=there)
    tl.store(values + place, value, mask=there)
    if averages:
        mean = tl.load(average + place, mask=there)
        tl.store(average + place, mean + one_minus_decay * (value - mean), mask=there)
    if copies:
        tl.store(work + place, value.to(work.dtype.element_ty), mask=there)


def update(
    values: Tensor,
    gradients: Tensor,
    velocities: Tensor,
    average: Tensor | None,
    work: Tensor | None,
    rate: Tensor,
    weight_decay: float,
    momentum: float,
    one_minus_decay: float,
) -> None:
    """Nesterov step: v <- momentum v + g, value <- value - rate (g + momentum v); then the average moves towards value
    by ``one_minus_decay``, and ``work`` becomes a copy of value."""
    settings = (rate, values.numel(), weight_decay, momentum, one_minus_decay)
    flags = {"averages": average is not None, "copies": work is not None}
    grid = (triton.cdiv(values.numel(), BLOCK),)
    _update[grid](values, gradients, velocities, average, work, *settings, **flags, block=BLOCK, num_warps=WARPS)

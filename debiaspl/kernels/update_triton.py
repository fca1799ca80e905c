"""SGD, averaging and the half-precision copy of the weights, in one pass over flat tensors."""

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 2048
WARPS = 8


@triton.jit
def _update(
    values,
    gradients,
    momentum,
    average,
    work,
    rate,
    size,
    weight_decay,
    friction,
    pace,
    averages: tl.constexpr,
    copies: tl.constexpr,
    block: tl.constexpr,
):
    place = tl.program_id(0) * block + tl.arange(0, block)
    there = place < size
    value = tl.load(values + place, mask=there)
    gradient = tl.load(gradients + place, mask=there).to(tl.float32) + weight_decay * value
    velocity = friction * tl.load(momentum + place, mask=there) + gradient
    value -= tl.load(rate).to(tl.float32) * (gradient + friction * velocity)
    tl.store(momentum + place, velocity, mask=there)
    tl.store(values + place, value, mask=there)
    if averages:
        mean = tl.load(average + place, mask=there)
        tl.store(average + place, mean + pace * (value - mean), mask=there)
    if copies:
        tl.store(work + place, value.to(work.dtype.element_ty), mask=there)


def update(
    values: Tensor,
    gradients: Tensor,
    momentum: Tensor,
    average: Tensor | None,
    work: Tensor | None,
    rate: Tensor,
    weight_decay: float,
    friction: float,
    pace: float,
) -> None:
    """Nesterov: v <- friction v + g, value <- value - rate (g + friction v); average <- average + pace (value - it)."""
    settings = (rate, values.numel(), weight_decay, friction, pace)
    flags = {"averages": average is not None, "copies": work is not None}
    grid = (triton.cdiv(values.numel(), BLOCK),)
    _update[grid](values, gradients, momentum, average, work, *settings, **flags, block=BLOCK, num_warps=WARPS)

"""AdamW (Loshchilov and Hutter, 2019) on flat tensors, and gradients of bounded length."""

from collections.abc import Sequence

import torch
from torch import Tensor

BETAS, EPS = (0.9, 0.999), 1e-8


def adamw_step(
    values: Tensor,
    gradient: Tensor,
    mean: Tensor,
    squares: Tensor,
    count: Tensor,
    rate: Tensor | float,
    weight_decay: float,
) -> None:
    """One step, in place; ``count`` is its number, from 1."""
    first, second = BETAS
    mean.lerp_(gradient, 1 - first)
    squares.mul_(second).addcmul_(gradient, gradient, value=1 - second)
    length = (squares / (1 - second**count)).sqrt_().add_(EPS)
    direction = mean / (1 - first**count) / length + weight_decay * values
    values.sub_((rate * direction).to(values.dtype))


def shorten(gradients: Sequence[Tensor], longest: float) -> None:
    """Shorten gradients, in place, so that together they are at most this long."""
    length = torch.stack([gradient.float().square().sum() for gradient in gradients]).sum().sqrt()
    share = (longest / (length + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(share.to(gradient.dtype))

"""Batch norm over the batches of all ranks, in plain torch: torch's own version does not support CPU tensors."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.debias import ranks
from debiaspl.debias.correction import at_least_float32


def joint_norm(
    images: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float | Tensor,
    eps: float,
) -> Tensor:
    """(N, C, H, W), normalised over all dimensions but the channels and over all ranks, which have as many rows each.

    Running statistics are updated in place. After averaging over ranks, gradients are those of the mean loss.
    """
    count = ranks.count() * images.numel() // images.shape[1]
    mean, variance = _statistics(at_least_float32(images.detach()))
    if running_mean is not None and running_var is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        unbiased = variance * (count / max(count - 1, 1))
        running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    normal: Tensor = _Normalised.apply(images, mean, variance, weight, bias, eps, count)  # type: ignore[no-untyped-call]
    return normal


def _statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel over all ranks, from one message, without subtracting two large sums."""
    variance, mean = torch.var_mean(images, (0, 2, 3), correction=0)
    means, variances = ranks.gathered(torch.stack([mean, variance])[None]).unbind(1)
    joint = means.mean(0)
    return joint, variances.mean(0) + (means - joint).square().mean(0)


def _per_channel(values: Tensor) -> Tensor:
    return values[:, None, None]


class _Normalised(torch.autograd.Function):
    """Batch norm with given mean and variance; its gradients include the images of all ranks."""

    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        mean: Tensor,
        variance: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
        count: int,
    ) -> Tensor:
        ctx.save_for_backward(images, mean, variance, weight)
        ctx.eps, ctx.count = eps, count
        return F.batch_norm(images, mean, variance, weight, bias, False, 0.0, eps)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        images, mean, variance, weight = ctx.saved_tensors
        fixed = (images, weight, mean, variance, None, None, False, ctx.eps, (True, True, True))
        # As if mean and variance were constants; then their dependence on the images, linear in each channel.
        found, of_weight, of_bias = torch.ops.aten.native_batch_norm_backward(gradient, *fixed)
        level, slope = ranks.summed(torch.stack([of_bias, of_weight])) / ctx.count
        scale = (variance + ctx.eps).rsqrt()
        factor = scale if weight is None else scale * weight
        rise = factor * scale * slope
        start = factor * level - rise * mean
        found = (found - _per_channel(start) - images * _per_channel(rise)).to(images.dtype)
        wanted = ctx.needs_input_grad
        return found, None, None, (of_weight if wanted[3] else None), (of_bias if wanted[4] else None), None, None

"""The batch norm kernels as one differentiable operation."""

from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from debiaspl.kernels import norm_triton as kernels

PROGRAMS = 264
"""Programs in a pass that sums: two per multiprocessor of a Hopper GPU; fewer for small inputs."""
TILE = 8192
"""Elements per program at a time: 32 per thread."""
WARPS = 8
SOME = 8
"""Channels whose partial sums one program adds."""


@dataclass(frozen=True)
class _Plan:
    """How a tensor is divided into tiles."""

    rows: int
    channels: int
    programs: int
    """Programs in a pass that sums."""
    tiles: int
    """Programs in a pass that does not sum."""
    known: dict[str, int]
    finish: dict[str, int]

    @property
    def groups(self) -> int:
        """Programs of the kernel that adds the partial sums."""
        return triton.cdiv(self.channels, SOME)


def _plan(x: Tensor) -> _Plan:
    channels = x.shape[1]
    rows, width = x.numel() // channels, triton.next_power_of_2(channels)
    height = TILE // width
    tiles = triton.cdiv(rows, height)
    programs = min(PROGRAMS, tiles)
    known = {"channels": channels, "width": width, "height": height, "num_warps": WARPS}
    finish = {"channels": channels, "some": SOME, "many": triton.next_power_of_2(programs), "num_warps": 4}
    return _Plan(rows, channels, programs, tiles, known, finish)


class NormActivate(torch.autograd.Function):
    """``(total, active)`` from ``features`` and, if given, ``inner``; running statistics are updated in place."""

    @staticmethod
    def forward(ctx, features, inner, weight, bias, running_mean, running_var, momentum, eps, slope):
        plan, adds = _plan(features), inner is not None
        total, active = torch.empty_like(features) if adds else features, torch.empty_like(features)
        parts = features.new_empty((plan.programs, 2, plan.channels), dtype=torch.float32)
        mean, scale = torch.empty((2, plan.channels), dtype=torch.float32, device=features.device)
        sizes = (plan.rows, plan.programs)
        kernels.statistics[(plan.programs,)](features, inner, total, parts, *sizes, adds=adds, **plan.known)
        learned = (running_mean, running_var, mean, scale)
        kernels.finish_statistics[(plan.groups,)](parts, *learned, *sizes, momentum, eps, **plan.finish)
        kernels.normalise[(plan.tiles,)](total, active, weight, bias, mean, scale, plan.rows, slope, **plan.known)
        ctx.save_for_backward(total, weight, bias, mean, scale)
        ctx.slope, ctx.adds = slope, adds
        ctx.set_materialize_grads(False)
        return (total if adds else features.view_as(features)), active

    @staticmethod
    def backward(ctx, beside, gradient):
        total, weight, bias, mean, scale = ctx.saved_tensors
        plan, adds = _plan(total), beside is not None
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        beside = beside.contiguous(memory_format=torch.channels_last) if adds else None
        parts = total.new_empty((plan.programs, 2, plan.channels), dtype=torch.float32)
        kept, found = (weight, bias, mean, scale), (torch.empty_like(weight), torch.empty_like(bias))
        sizes = (plan.rows, plan.programs, ctx.slope)
        kernels.gradient_sums[(plan.programs,)](total, gradient, parts, *kept, *sizes, **plan.known)
        kernels.finish_gradient[(plan.groups,)](parts, *found, plan.programs, **plan.finish)
        result = torch.empty_like(total)
        spread = (total, gradient, beside, result, *kept, *found, plan.rows, ctx.slope)
        kernels.gradient[(plan.tiles,)](*spread, adds=adds, **plan.known)
        return result, (result if ctx.adds else None), *found, None, None, None, None, None


def apply(
    features: Tensor,
    inner: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    eps: float,
    slope: float,
) -> tuple[Tensor, Tensor]:
    """``(total, active)`` in eval mode, without gradients."""
    plan, adds = _plan(features), inner is not None
    total, active = torch.empty_like(features) if adds else features, torch.empty_like(features)
    learned = (weight, bias, running_mean, running_var)
    kernels.apply[(plan.tiles,)](
        features, inner, total, active, *learned, plan.rows, eps, slope, adds=adds, **plan.known
    )
    return total, active

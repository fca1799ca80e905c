"""Batch norm between a sum and a leaky ReLU, for pre-activation residual networks, and batch norm over all ranks."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from debiaspl.debias import ranks
from debiaspl.debias.correction import at_least_float32
from debiaspl.kernels import triton_works

WIDEST = 2048
"""Largest number of channels in a tile of the kernel."""


class NormActivate(nn.Module):
    """``total, active = norm(features, inner)``: total is their sum, active the normalised and activated total.

    On a GPU the three operations take two passes over memory in each direction instead of eight. State and settings are
    those of ``nn.BatchNorm2d``, without its count of batches. If ``synchronised`` is set, the statistics are over the
    batches of all ranks, in plain torch.
    """

    synchronised = False
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, momentum: float, eps: float, slope: float) -> None:
        super().__init__()
        self.channels, self.momentum, self.eps, self.slope = channels, momentum, eps, slope
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, features: Tensor, inner: Tensor | None = None) -> tuple[Tensor, Tensor]:
        fused = self._fits(features) and not self._joins()
        return self.fused(features, inner) if fused else self.plain(features, inner)

    def plain(self, features: Tensor, inner: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The version in plain torch."""
        total = features if inner is None else features + inner
        if self._joins():
            normalised = joint_norm(total, self, self.momentum)
        else:
            learned = self.running_mean, self.running_var, self.weight, self.bias
            normalised = F.batch_norm(total, *learned, self.training, self.momentum, self.eps)
        return total, F.leaky_relu(normalised, self.slope)

    def _joins(self) -> bool:
        return self.synchronised and self.training and ranks.count() > 1

    def _fits(self, features: Tensor) -> bool:
        needs_gradient = torch.is_grad_enabled() and (features.requires_grad or self.weight.requires_grad)
        return (
            features.is_cuda
            and triton_works()
            and (self.training or not needs_gradient)
            and self.channels <= WIDEST
            and features.is_contiguous(memory_format=torch.channels_last)
        )

    def fused(self, features: Tensor, inner: Tensor | None) -> tuple[Tensor, Tensor]:
        from debiaspl.kernels import norm_triton

        if inner is not None:
            inner = inner.contiguous(memory_format=torch.channels_last)
        learned = self.weight, self.bias, self.running_mean, self.running_var
        if not self.training:
            return norm_triton.apply(features, inner, learned, self.eps, self.slope)
        settings = self.momentum, self.eps, self.slope
        both: tuple[Tensor, Tensor] = norm_triton.NormActivate.apply(features, inner, *learned, *settings)  # type: ignore[no-untyped-call]
        return both


def synchronise_norms(network: nn.Module) -> None:
    """Make batch norm use the joint batch of all ranks, in training: in place, with the same parameters and names."""
    for name, module in network.named_modules():
        if isinstance(module, _BatchNorm) and type(module) not in (nn.BatchNorm2d, JointBatchNorm2d):
            found = f"{name} is a {type(module).__name__}, but only nn.BatchNorm2d can be synchronised"
            raise ValueError(f"{found}. Use the statistics of each rank for this network.")
    for module in list(network.modules()):
        if isinstance(module, NormActivate):
            module.synchronised = True
        for name, child in list(module.named_children()):
            if type(child) is nn.BatchNorm2d:
                setattr(module, name, JointBatchNorm2d(child))


class JointBatchNorm2d(nn.BatchNorm2d):
    """``nn.BatchNorm2d`` over all ranks, in place of an existing one."""

    def __init__(self, norm: nn.BatchNorm2d) -> None:
        super().__init__(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(self, name, getattr(norm, name))
        self.train(norm.training)

    def forward(self, images: Tensor) -> Tensor:
        if not self.training or ranks.count() == 1:
            return super().forward(images)
        self._check_input_dim(images)
        momentum: float | Tensor = 0.0 if self.momentum is None else self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # every batch has the same weight
                momentum = 1 / self.num_batches_tracked
        return joint_norm(images, self, momentum)


def joint_norm(images: Tensor, norm: NormActivate | nn.BatchNorm2d, momentum: float | Tensor) -> Tensor:
    """(N, C, H, W), normalised over all dimensions but the channels and over all ranks, which have as many rows each,
    in plain torch: torch's own version does not support CPU tensors.

    Running statistics are updated in place. After averaging over ranks, gradients are those of the mean loss.
    """
    count = ranks.count() * images.numel() // images.shape[1]
    # From one message, without subtracting two large sums.
    own_variance, own_mean = torch.var_mean(at_least_float32(images.detach()), (0, 2, 3), correction=0)
    means, variances = ranks.gathered(torch.stack([own_mean, own_variance])[None]).unbind(1)
    mean = means.mean(0)
    variance = variances.mean(0) + (means - mean).square().mean(0)
    if norm.running_mean is not None and norm.running_var is not None:
        norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), momentum)
        unbiased = variance * (count / max(count - 1, 1))
        norm.running_var.lerp_(unbiased.to(norm.running_var.dtype), momentum)
    settings = norm.weight, norm.bias, norm.eps, count
    normal: Tensor = _Normalised.apply(images, mean, variance, *settings)  # type: ignore[no-untyped-call]
    return normal


class _Normalised(torch.autograd.Function):
    """Batch norm with given mean and variance; its gradients include those of all ranks."""

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
        found = (found - start[:, None, None] - images * rise[:, None, None]).to(images.dtype)
        wanted = ctx.needs_input_grad
        return found, None, None, (of_weight if wanted[3] else None), (of_bias if wanted[4] else None), None, None

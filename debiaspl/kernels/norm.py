"""Batch norm between a sum and a leaky ReLU, for pre-activation residual networks."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.debias import ranks
from debiaspl.kernels import triton_works
from debiaspl.kernels.norm_ranks import joint_norm

WIDEST = 2048
"""Largest number of channels in a tile of the kernel."""


class NormActivate(nn.Module):
    """``total, active = norm(features, inner)``: total is their sum, active the normalised and activated total.

    On a GPU the three operations take two passes over memory in each direction instead of eight. State and settings are
    those of ``nn.BatchNorm2d``, without its count of batches, which is not needed with a given momentum.

    If ``synchronised`` is set, the statistics are over the batches of all ranks, in plain torch.
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
        if self.synchronised and self.training and ranks.count() > 1:
            return self.joint(features, inner)
        return self.fused(features, inner) if self._fits(features) else self.plain(features, inner)

    def plain(self, features: Tensor, inner: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The version in plain torch."""
        total = features if inner is None else features + inner
        learned = self.running_mean, self.running_var, self.weight, self.bias
        normalised = F.batch_norm(total, *learned, self.training, self.momentum, self.eps)
        return total, F.leaky_relu(normalised, self.slope)

    def joint(self, features: Tensor, inner: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total = features if inner is None else features + inner
        learned = self.weight, self.bias, self.running_mean, self.running_var
        return total, F.leaky_relu(joint_norm(total, *learned, self.momentum, self.eps), self.slope)

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
        from debiaspl.kernels import norm_function

        if inner is not None:
            inner = inner.contiguous(memory_format=torch.channels_last)
        learned = self.weight, self.bias, self.running_mean, self.running_var
        if not self.training:
            return norm_function.apply(features, inner, *learned, self.eps, self.slope)
        settings = self.momentum, self.eps, self.slope
        both: tuple[Tensor, Tensor] = norm_function.NormActivate.apply(features, inner, *learned, *settings)  # type: ignore[no-untyped-call]
        return both

    def extra_repr(self) -> str:
        return f"{self.channels}, momentum={self.momentum}, eps={self.eps}, slope={self.slope}"

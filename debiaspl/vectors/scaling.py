"""Vectors of any unit brought to one scale, and the way back."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from debiaspl.debias.head import rewritten

CHUNK = 8192


@dataclass(frozen=True, eq=False)
class Scaling:
    """``scaling(features)``: every feature has mean 0, and the vectors have length 1 on average, whatever their width.

    The length is what the size of a step has to fit: with it one learning rate serves 2 features and 2,000.
    """

    mean: Tensor
    """(D,), in the precision of the features."""
    factor: Tensor
    """(D,): 1 / (deviation * sqrt(D)); 0 for a feature that never changes, which can tell nothing."""

    @classmethod
    def of(cls, features: Tensor) -> "Scaling":
        """From all rows of (N, D) or (V, N, D)."""
        rows = features.reshape(-1, features.shape[-1])
        dtype = torch.promote_types(features.dtype, torch.float32)
        # Sums of a part in the features' own precision, which is fast; sums of parts in float64, which is exact.
        parts = [part.to(dtype) for part in torch.split(rows, CHUNK)]
        mean = torch.stack([part.sum(0) for part in parts]).double().sum(0) / len(rows)
        # Around the mean: the difference of two large sums would lose what varies beside a large offset.
        spread = torch.stack([(part - mean.to(dtype)).square_().sum(0) for part in parts]).double().sum(0) / len(rows)
        deviation = spread.sqrt()
        varies = deviation > 10 * torch.finfo(dtype).eps * mean.abs()
        factor = torch.where(varies, 1 / (deviation * features.shape[-1] ** 0.5), 0.0)
        return cls(mean.to(dtype), factor.to(dtype))

    def __call__(self, features: Tensor) -> Tensor:
        return ((features - self.mean) * self.factor).float()

    def folded_into(self, head: nn.Linear) -> nn.Linear:
        """The classifier of raw features that equals ``head`` on scaled ones."""
        weight = head.weight.detach().double() * self.factor
        bias = head.bias.detach().double() - weight @ self.mean.double()
        return rewritten(head.to(self.mean.dtype), weight, bias).requires_grad_(False)


@torch.no_grad()
def curvature(vectors: Tensor) -> float:
    """The largest eigenvalue of the mean of x x^T: how much the loss can bend along any direction, but for a factor."""
    direction = vectors.norm(dim=1) @ vectors
    for _ in range(20):
        direction = (vectors @ (direction / direction.norm().clamp_min(1e-12))) @ vectors
    return float(direction.norm() / len(vectors))

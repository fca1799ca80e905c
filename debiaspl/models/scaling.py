"""Scales images and vectors for a network."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.kernels import holds

CHUNK = 8192
SAMPLE = 1000
"""Rows for measuring the largest eigenvalue."""


def scale(images: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Scale uint8 0..255 to -1..1, as FixMatch does, in torch's default precision or ``dtype``; channels last, the
    layout that convolutions prefer. Features, (N, D), stay as they are."""
    if images.is_floating_point():
        return images
    dtype = dtype or torch.get_default_dtype()
    if holds(images):
        from debiaspl.kernels import views_triton

        return views_triton.scale(images.contiguous(), dtype)
    return images.to(torch.float32, memory_format=torch.channels_last).div_(127.5).sub_(1).to(dtype)


class Scaling(nn.Module):
    """Scales vectors of any unit, so that one learning rate fits all of them.

    ``scaling(vectors)``: subtracts the mean, then divides every feature by its deviation or, with ``unit``, every
    vector by its length. Finally it multiplies all by one number, so that the largest curvature of a linear
    classifier's loss is the same for all data.

    Vectors of a pretrained encoder differ by their direction: divide by their length. Columns of a table have different
    units: divide by their deviations.
    """

    mean: Tensor
    factor: Tensor
    gain: Tensor

    def __init__(self, width: int, unit: bool = False) -> None:
        super().__init__()
        self.unit = unit
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("factor", torch.ones(width))
        self.register_buffer("gain", torch.ones(()))

    @classmethod
    @torch.no_grad()
    def of(cls, vectors: Tensor, unit: bool = False) -> "Scaling":
        """Learn the scale from all rows of (N, D)."""
        scaling = cls(vectors.shape[1], unit).to(vectors.device)
        dtype = torch.promote_types(vectors.dtype, torch.float32)
        # Sums within a part in the vectors' own precision, which is fast; sums of parts in float64, which is exact.
        parts = torch.split(vectors, CHUNK)
        mean = torch.stack([part.to(dtype).sum(0) for part in parts]).double().sum(0) / len(vectors)
        scaling.mean = mean.to(dtype)
        if not unit:
            # Around the mean: the difference of two large sums would lose small variations beside a large offset.
            squares = torch.stack([(part.to(dtype) - scaling.mean).square_().sum(0) for part in parts]).double().sum(0)
            deviation = (squares / len(vectors)).sqrt()
            # A feature that never changes carries no information.
            varies = deviation > 10 * torch.finfo(dtype).eps * mean.abs()
            scaling.factor = torch.where(varies, 1 / deviation, 0.0).to(dtype)
        some = vectors[:: max(len(vectors) // SAMPLE, 1)]
        scaling.gain = 1 / _steepest(scaling(some))
        return scaling

    def forward(self, vectors: Tensor) -> Tensor:
        centred = ((vectors - self.mean) * self.factor).float()
        return (F.normalize(centred, dim=-1) if self.unit else centred) * self.gain


def _steepest(vectors: Tensor) -> Tensor:
    """The square root of the largest eigenvalue of the mean of x x^T; its square is the curvature, up to a factor."""
    direction = vectors.norm(dim=1) @ vectors
    for _ in range(20):
        direction = (vectors @ (direction / direction.norm().clamp_min(1e-12))) @ vectors
    largest: Tensor = direction.norm() / len(vectors)
    return largest.sqrt().clamp_min(1e-6)

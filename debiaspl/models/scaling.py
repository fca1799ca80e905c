"""Images and vectors brought to the scale that a network takes."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.kernels import holds

CHUNK = 8192
SAMPLE = 1000
"""Rows that the largest eigenvalue is measured with."""


def scale(images: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """uint8 0..255 to -1..1, as FixMatch scales its images, in torch's default precision unless another is named;
    channels last, the layout convolutions prefer. Of vectors, (N, V, D), the first: the picture as it is."""
    if images.is_floating_point():
        return images[:, 0]
    dtype = dtype or torch.get_default_dtype()
    if holds(images):
        from debiaspl.kernels import views_triton

        return views_triton.scale(images.contiguous(), dtype)
    return images.to(torch.float32, memory_format=torch.channels_last).div_(127.5).sub_(1).to(dtype)


class Scaling(nn.Module):
    """Vectors of any unit brought to one scale, so that one learning rate fits all of them.

    ``scaling(vectors)``: centred, then either every feature divided by its deviation or, with ``unit``, every vector
    divided by its length; and all of them multiplied by one number, so that the loss of a linear classifier bends by
    the same amount along its steepest direction, whatever the vectors are.

    Vectors of a pretrained encoder are told apart by their direction: divide by their length. The columns of a table
    have units of their own: divide by their deviations.
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
        """From all rows of (N, D)."""
        made = cls(vectors.shape[1], unit).to(vectors.device)
        dtype = torch.promote_types(vectors.dtype, torch.float32)
        # Sums of a part in the vectors' own precision, which is fast; sums of parts in float64, which is exact.
        parts = [part.to(dtype) for part in torch.split(vectors, CHUNK)]
        mean = torch.stack([part.sum(0) for part in parts]).double().sum(0) / len(vectors)
        made.mean = mean.to(dtype)
        if not unit:
            # Around the mean: the difference of two large sums would lose what varies beside a large offset.
            squares = torch.stack([(part - made.mean).square_().sum(0) for part in parts]).double().sum(0)
            deviation = (squares / len(vectors)).sqrt()
            # A feature that never changes can tell nothing.
            varies = deviation > 10 * torch.finfo(dtype).eps * mean.abs()
            made.factor = torch.where(varies, 1 / deviation, 0.0).to(dtype)
        some = vectors[:: max(len(vectors) // SAMPLE, 1)]
        made.gain = 1 / _steepest(made(some))
        return made

    def forward(self, vectors: Tensor) -> Tensor:
        centred = ((vectors - self.mean) * self.factor).float()
        return (F.normalize(centred, dim=-1) if self.unit else centred) * self.gain


def _steepest(vectors: Tensor) -> Tensor:
    """The root of the largest eigenvalue of the mean of x x^T: the loss bends by its square, but for a factor."""
    direction = vectors.norm(dim=1) @ vectors
    for _ in range(20):
        direction = (vectors @ (direction / direction.norm().clamp_min(1e-12))) @ vectors
    largest: Tensor = direction.norm() / len(vectors)
    return largest.sqrt().clamp_min(1e-6)

"""What a step sees of the pictures, or the vectors, that it has drawn: weak and strong views."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from debiaspl.augment.weak import Weak
from debiaspl.debias import ranks
from debiaspl.models import scale


class ViewMaker(Protocol):
    """One view of each of these, drawn from the generator, as the network takes it."""

    def weak(self, drawn: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]: ...

    def strong(self, drawn: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]: ...


@dataclass(frozen=True)
class ImageViews:
    """Of uint8 pictures, (N, C, H, W)."""

    flip_and_crop: Weak
    change: Callable[[Tensor, torch.Generator], Tensor]
    """What makes a weak view a strong one."""
    dtype: torch.dtype | None
    """Of what the network takes; torch's default, unless given."""

    def weak(self, drawn: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        return [scale(self.flip_and_crop(picture, generator), self.dtype) for picture in drawn]

    def strong(self, drawn: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        cropped = [self.flip_and_crop(picture, generator) for picture in drawn]
        return [scale(self.change(picture, generator), self.dtype) for picture in cropped]


@dataclass(frozen=True)
class Hide:
    """The strong view of a vector: some of its features are hidden, and the others disturbed.

    ``hide(vectors, generator)``: for what has been scaled, so that 0 is the mean of every feature.
    """

    hidden: float = 0.25
    """Share of the features that are set to their mean."""
    noise: float = 0.0
    """Length of the noise on the others, for vectors of length 1."""

    def __post_init__(self) -> None:
        if not 0 <= self.hidden < 1:
            raise ValueError(f"hidden is {self.hidden}, expected a share in [0, 1): 0 hides no feature.")
        if not 0 <= self.noise < float("inf"):
            raise ValueError(f"noise is {self.noise}, expected 0 or more: the length of what is added.")

    def __call__(self, vectors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        rows, width = ranks.count() * len(vectors), vectors.shape[1]
        if self.noise:
            drawn = torch.randn((rows, width), generator=generator, device=vectors.device)
            length = vectors.norm(dim=-1, keepdim=True)
            vectors = vectors.addcmul(ranks.own_part(drawn), length, value=self.noise / width**0.5)
        if self.hidden:
            # Random bytes, eight from each draw: that takes a seventh of the time of a uniform number for each.
            draws = torch.empty((rows, -(-width // 8)), dtype=torch.int64, device=vectors.device)
            draws = ranks.own_part(draws.random_(-(2**63), None, generator=generator))
            hidden = min(round(256 * self.hidden), 255)
            kept = draws.view(torch.uint8)[:, :width] >= hidden
            # Scaled up by what is hidden: shorter vectors would have smaller logits, and teach weights to grow.
            vectors = vectors * kept * (256 / (256 - hidden))
        return vectors


@dataclass(frozen=True)
class VectorViews:
    """Of vectors, (N, V, D): one of those that were computed of an image's views; or made of one, by ``hide``."""

    given: int
    """How many of the V, the last ones, are of strong views."""
    hide: Hide | None
    """What makes a weak view a strong one; None where strong ones are given."""

    def weak(self, drawn: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        return [_one_of(vectors[:, : vectors.shape[1] - self.given], generator) for vectors in drawn]

    def strong(self, drawn: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        if self.hide is None:
            return [_one_of(vectors[:, vectors.shape[1] - self.given :], generator) for vectors in drawn]
        return [self.hide(vectors, generator) for vectors in self.weak(drawn, generator)]


def _one_of(vectors: Tensor, generator: torch.Generator) -> Tensor:
    """A view of each row, (N, D); nothing is drawn where there is one only."""
    count, views, _ = vectors.shape
    if views == 1:
        return vectors[:, 0]
    drawn = torch.randint(views, (ranks.count() * count,), generator=generator, device=vectors.device)
    return vectors[torch.arange(count, device=vectors.device), ranks.own_part(drawn)]

"""What a step sees of the pictures, or the vectors, that it has drawn: weak and strong views."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from debiaspl.augment.hide import Hide
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

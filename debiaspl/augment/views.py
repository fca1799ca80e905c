"""Weak and strong views of the images or vectors of a step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from debiaspl._checks import within
from debiaspl.augment.weak import Weak
from debiaspl.debias import ranks
from debiaspl.models import scale


@dataclass(frozen=True)
class ImageViews:
    """Views of uint8 images, (N, C, H, W)."""

    flip_and_crop: Weak
    change: Callable[[Tensor, torch.Generator], Tensor]
    """Turns a weak view into a strong one."""
    dtype: torch.dtype | None
    """Dtype of the network's input; by default torch's."""

    def weak(self, drawn: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        return [scale(self.flip_and_crop(picture, generator), self.dtype) for picture in drawn]

    def strong(self, drawn: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        cropped = [self.flip_and_crop(picture, generator) for picture in drawn]
        return [scale(self.change(picture, generator), self.dtype) for picture in cropped]


@dataclass(frozen=True)
class Hide:
    """The strong view of a vector: some features are hidden, noise is added to the others.

    ``hide(vectors, generator)``: for scaled vectors, so that 0 is the mean of every feature.
    """

    hidden: float = 0.25
    """Share of the features that are set to their mean."""
    noise: float = 0.0
    """Length of the noise on the other features, for vectors of length 1."""

    def __post_init__(self) -> None:
        within("hidden", self.hidden, "[0, 1)")
        within("noise", self.noise, "[0, inf)")

    def __call__(self, vectors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        rows, width = ranks.count() * len(vectors), vectors.shape[1]
        if self.noise:
            drawn = torch.randn((rows, width), generator=generator, device=vectors.device)
            length = vectors.norm(dim=-1, keepdim=True)
            vectors = vectors.addcmul(ranks.own_part(drawn), length, value=self.noise / width**0.5)
        if self.hidden:
            # Random bytes, eight from each draw: this takes a seventh of the time of one uniform number each.
            draws = torch.empty((rows, -(-width // 8)), dtype=torch.int64, device=vectors.device)
            draws = ranks.own_part(draws.random_(-(2**63), None, generator=generator))
            hidden = min(round(256 * self.hidden), 255)
            kept = draws.view(torch.uint8)[:, :width] >= hidden
            # Scaled up for the hidden features: shorter vectors would have smaller logits and make weights grow.
            vectors = vectors * kept * (256 / (256 - hidden))
        return vectors


@dataclass(frozen=True)
class VectorViews:
    """Views of vectors, (N, D): the weak one is the vector itself."""

    hide: Callable[[Tensor, torch.Generator], Tensor]
    """Turns it into a strong one."""

    def weak(self, drawn: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        return list(drawn)

    def strong(self, drawn: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        return [self.hide(vectors, generator) for vectors in drawn]


ViewMaker = ImageViews | VectorViews
"""Makes one view of each input, with the generator, in the form that the network takes."""

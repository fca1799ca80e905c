"""Weak and strong views of the images or vectors of a step. The weak view of FixMatch: a flip, and a crop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from debiaspl.augment.batch import uniform
from debiaspl.data.images import check_pixels
from debiaspl.debias import ranks
from debiaspl.debias.correction import within
from debiaspl.kernels import holds
from debiaspl.models import scale


@dataclass(frozen=True, eq=False)
class Crops:
    """The random choices for each image of a batch."""

    flip: Tensor
    """bool, (N,): mirrored left to right, before the crop."""
    top: Tensor
    """int64, (N,): first row of the crop in the padded image."""
    left: Tensor
    """int64, (N,): first column of the crop in the padded image."""


@dataclass(frozen=True)
class Weak:
    """Random flip and crop: called with uint8 images (N, C, H, W) and a generator."""

    flip: bool = True
    """Mirror half of the images, left to right."""
    pad: float = 0.125
    """Border on each side from which a crop may come, as a share of the side, rounded: 4 pixels for 32, 1 for 8."""

    def __post_init__(self) -> None:
        within("pad", self.pad, "[0, 1)")

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.apply(images, self.draw(images, generator))

    def draw(self, images: Tensor, generator: torch.Generator | None = None) -> Crops:
        """Make the random choices for a batch of this shape and device; pixels are not used."""
        check_pixels(images)
        flip, top, left = uniform(3, images, generator).unbind()
        offsets = (2 * self._border(side) + 1 for side in images.shape[2:])
        top, left = ((number * choices).long() for number, choices in zip((top, left), offsets, strict=True))
        return Crops(flip < (0.5 if self.flip else 0.0), top, left)

    def apply(self, images: Tensor, crops: Crops) -> Tensor:
        """Apply the choices: rows, then columns, without a padded copy of the batch and with small indices."""
        count, channels, height, width = images.shape
        across, down = self._border(width), self._border(height)
        if holds(images):
            from debiaspl.kernels.views_triton import crop

            return crop(images.contiguous(), crops.flip, crops.top, crops.left, down, across)
        rows = _windows(height, down, images.device).index_select(0, crops.top).unsqueeze(1)
        columns = _windows(width, across, images.device).index_select(0, crops.left + crops.flip * (2 * across + 1))
        first = torch.arange(0, count * channels * height, height, device=images.device).view(count, channels, 1)
        picked = images.reshape(-1, width).index_select(0, (first + rows).view(-1))
        picked = picked.view(count, channels * height, width)
        return picked.gather(2, columns.unsqueeze(1).expand_as(picked)).view(images.shape)

    def _border(self, side: int) -> int:
        border = round(self.pad * side)
        if border >= side:
            raise ValueError(f"pad is {self.pad}, which is {border} of {side} pixels. Use a smaller pad.")
        return border


@lru_cache(maxsize=64)
def _windows(side: int, border: int, device: torch.device) -> Tensor:
    """Source of each pixel of a crop, (2 (2 border + 1), side): for every offset, and then again mirrored."""
    padded = [abs(place) for place in range(-border, side)] + [side - 2 - step for step in range(border)]
    windows = torch.tensor(padded).unfold(0, side, 1)
    return torch.cat((windows, side - 1 - windows)).to(device)


@dataclass(frozen=True)
class ImageViews:
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
    """The strong view of a scaled vector: some features are set to their mean, 0, noise is added to the others."""

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

"""Random crop and random colours: the view of contrastive learning (Chen et al., 2020)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.augment.batch import constant, uniform
from debiaspl.data.images import check_pixels
from debiaspl.debias.correction import at_least_float32, within

AREA = 0.05, 0.14
"""Smallest and largest share of the image in a small crop of SwAV and of PAWS on ImageNet."""
LUMA = (0.299, 0.587, 0.114)
RATIO = 4 / 3
"""Widest aspect ratio of a crop before it is made square; the narrowest is its inverse."""
# Grey and the two axes of colour: rotating the latter two changes the hue and keeps the grey.
YIQ = (LUMA, (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))
RGB = tuple(tuple(row) for row in torch.tensor(YIQ, dtype=torch.float64).inverse().tolist())


def random_crops(pixels: Tensor, numbers: Tensor, area: Sequence[float], size: Sequence[int]) -> Tensor:
    """A crop of each image, resized to this height and width, from four uniform numbers each, (4, N); ``area`` are the
    smallest and the largest share of the image in it."""
    least, most = area
    shares = least + (most - least) * numbers[0]
    ratio = ((2 * numbers[1] - 1) * math.log(RATIO)).exp()
    width, height = ((shares * shape).sqrt().clamp_max(1) for shape in (ratio, 1 / ratio))
    # In coordinates from -1 to 1, the centre of a crop of share w is within 1 - w of the middle.
    across, down = ((1 - side) * (2 * number - 1) for side, number in ((width, numbers[2]), (height, numbers[3])))
    zero = torch.zeros_like(width)
    rows = torch.stack((width, zero, across, zero, height, down), 1).view(-1, 2, 3)
    grid = F.affine_grid(rows, [*pixels.shape[:2], *size], align_corners=False)
    return F.grid_sample(pixels, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def small_crops(views: Sequence[Tensor], area: Sequence[float], generator: torch.Generator | None) -> Tensor:
    """Multi-crop (Caron et al., 2020): a random crop of each view, at half its height and width, view after view."""
    images = torch.cat(list(views))
    # Every view has its own numbers, so that an image's crops do not depend on the number of ranks.
    numbers = torch.cat([uniform(4, view, generator) for view in views], 1)
    pixels = at_least_float32(images)
    size = [max(1, side // 2) for side in images.shape[2:]]
    return random_crops(pixels, numbers.to(pixels.dtype), area, size).to(images.dtype)


def checked_area(area: Sequence[float]) -> tuple[float, float]:
    if len(area) != 2 or area[0] > area[1]:
        raise ValueError(f"small_area is {tuple(area)}, expected two shares of the image, such as 0.05,0.14.")
    return within("small_area", area[0], "(0, 1]"), within("small_area", area[1], "(0, 1]")


@dataclass(frozen=True)
class CropColor:
    """Random crop, resized, and random colours: called with uint8 images (N, C, H, W) and a generator.

    Brightness, contrast, saturation, hue and greyness are one matrix and one offset per image; bytes are clipped once.
    """

    least_area: float = 0.2
    """Smallest share of the image in a crop; 1: no crop."""
    color: float = 0.5
    """Strength of colour changes: brightness, contrast and saturation by up to 0.8 of this, the hue by up to 0.2."""
    color_share: float = 0.8
    """Share of the images whose colours change."""
    grey_share: float = 0.2
    """Share of the images that become grey."""

    def __post_init__(self) -> None:
        within("least_area", self.least_area, "(0, 1]")
        for name in ("color", "color_share", "grey_share"):
            within(name, getattr(self, name), "[0, 1]")

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        check_pixels(images)
        numbers = uniform(10, images, generator).float()
        pixels = images.float()
        if self.least_area < 1:
            pixels = random_crops(pixels, numbers[:4], (self.least_area, 1), pixels.shape[2:])
        if self.color or self.grey_share:
            pixels = self._colored(pixels, numbers[4:])
        return pixels.round_().clamp_(0, 255).to(torch.uint8)

    def _colored(self, pixels: Tensor, numbers: Tensor) -> Tensor:
        changed = (numbers[0] < self.color_share).float()
        bright, contrast, saturated, turn = changed * self.color * (2 * numbers[1:5] - 1)
        bright, contrast, saturated = (1 + 0.8 * number for number in (bright, contrast, saturated))
        if pixels.shape[1] == 3:
            saturated = saturated * (numbers[5] >= self.grey_share)
            turn = 2 * math.pi * 0.2 * turn
            to = constant(YIQ, torch.float32, pixels.device)
            one, zero = torch.ones_like(turn), torch.zeros_like(turn)
            cos, sin = saturated * turn.cos(), saturated * turn.sin()
            middle = torch.stack((one, zero, zero, zero, cos, -sin, zero, sin, cos), 1).view(-1, 3, 3)
            matrix = constant(RGB, torch.float32, pixels.device) @ middle @ to
            shades = constant(LUMA, torch.float32, pixels.device)
        else:
            matrix, shades = torch.ones_like(bright).view(-1, 1, 1), pixels.new_ones(1)
        # Contrast is around the mean grey of the image after the change of brightness.
        mean = bright * (pixels.mean((2, 3)) @ shades)
        offset = mean * (1 - contrast)
        scaled: Tensor = matrix * (bright * contrast).view(-1, 1, 1)
        return torch.bmm(scaled, pixels.flatten(2)).add_(offset.view(-1, 1, 1)).view(pixels.shape)

"""Multi-crop (Caron et al., 2020): small crops of views, which cost a quarter of a large view."""

from collections.abc import Sequence

import torch
from torch import Tensor

from debiaspl._checks import within
from debiaspl.augment.batch import uniform
from debiaspl.augment.cropcolor import random_crops
from debiaspl.debias.correction import at_least_float32

AREA = 0.05, 0.14
"""Smallest and largest share of the image in a small crop of SwAV and of PAWS on ImageNet."""


def small_crops(views: Sequence[Tensor], area: Sequence[float], generator: torch.Generator | None) -> Tensor:
    """A random crop of each view, at half the height and width of the views, one after the other."""
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

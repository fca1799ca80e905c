"""Functions that all augmentations share: checks of images, random numbers, and cached constants on the device."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from debiaspl.data.images import check_pixels
from debiaspl.debias import ranks

LARGEST_SIDE = 16_383
"""Coordinates are 16.16 fixed-point numbers, and a rotation needs up to twice the side."""


def check_images(images: Tensor) -> None:
    check_pixels(images)
    shape = tuple(images.shape)
    if not (1 <= shape[2] <= LARGEST_SIDE and 1 <= shape[3] <= LARGEST_SIDE):
        raise ValueError(f"images are {shape[2]} x {shape[3]} pixels, expected sides of 1 to {LARGEST_SIDE}.")


def uniform(numbers: int, images: Tensor, generator: torch.Generator | None) -> Tensor:
    """Uniform float64 numbers in [0, 1), (numbers, N). How many are drawn depends only on the size of the batch.

    Each rank draws for the batches of all ranks and uses its own part: no two ranks share a number, their generators
    stay in the same state, and the views of an image do not depend on the number of ranks.
    """
    everyone = ranks.count() * images.shape[0]
    drawn = torch.rand(numbers, everyone, generator=generator, device=images.device, dtype=torch.float64)
    return ranks.own_part(drawn, 1).contiguous()


@lru_cache(maxsize=512)
def constant(numbers: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor of a few numbers, cached per device; do not write to it.

    It is made on the CPU and moved. This fails during a CUDA graph capture, as it should: the memory would belong to
    the graph.
    """
    return torch.tensor(numbers, dtype=dtype).to(device)


@lru_cache(maxsize=512)
def counting(stop: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """0, 1, 2, ... as a cached constant."""
    return torch.arange(stop).to(dtype).to(device)

"""What every augmentation asks of its batch: proper images, random numbers, and small constants beside the images."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from debiaspl.debias import ranks

LARGEST_SIDE = 16_383
"""Coordinates are 16.16 fixed-point numbers, and a rotation reaches up to twice the side."""


def check_images(images: Tensor) -> None:
    shape, dtype = tuple(images.shape), images.dtype
    if dtype != torch.uint8 or len(shape) != 4 or shape[1] not in (1, 3):
        raise ValueError(
            f"images have shape {shape} and dtype {dtype}, expected uint8 (N, C, H, W) with C = 1 or 3. "
            "For values in 0..1 use (images * 255).round().to(torch.uint8); for (N, H, W, C) use permute(0, 3, 1, 2)."
        )
    if not (1 <= shape[2] <= LARGEST_SIDE and 1 <= shape[3] <= LARGEST_SIDE):
        raise ValueError(
            f"images are {shape[2]} x {shape[3]} pixels, expected 1 to {LARGEST_SIDE} a side. Resize them first."
        )


def uniform(numbers: int, images: Tensor, generator: torch.Generator | None) -> Tensor:
    """Uniform float64 numbers in [0, 1), (numbers, N): how many depends on nothing but the size of the batch.

    Each of several ranks draws for the batches of all of them and takes its own part: no two share a number, their
    generators stay alike, and the views of an image do not depend on how many ranks there are.
    """
    if generator is not None and generator.device.type != images.device.type:
        raise ValueError(
            f"the generator lives on {generator.device}, but the images on {images.device}. "
            f"Make it with torch.Generator({str(images.device)!r})."
        )
    everyone = ranks.count() * images.shape[0]
    drawn = torch.rand(numbers, everyone, generator=generator, device=images.device, dtype=torch.float64)
    return ranks.own_part(drawn, 1).contiguous()


@lru_cache(maxsize=512)
def constant(numbers: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor of a few numbers, made once for each device, and not to be written to.

    It is made on the CPU and moved. A CUDA graph capture forbids that, and rightly: the memory would be the graph's.
    """
    return torch.tensor(numbers, dtype=dtype).to(device)


@lru_cache(maxsize=512)
def counting(stop: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """0, 1, 2, ... as a constant."""
    return torch.arange(stop).to(dtype).to(device)

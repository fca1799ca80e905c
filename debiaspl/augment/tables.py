"""Operations on single pixel levels: a table of 256 entries per image and channel, and one lookup."""

from functools import lru_cache

import torch
from torch import Tensor

from debiaspl.augment.batch import constant, counting
from debiaspl.augment.blends import luma


def autocontrast(images: Tensor, value: Tensor) -> Tensor:
    """Stretch each channel so that its darkest level becomes 0 and its lightest 255."""
    flat = images.flatten(2)
    low = flat.amin(2, keepdim=True).double()
    span = flat.amax(2, keepdim=True) - low
    # The last bit can decide between two levels: float64, a difference of two products, and 255 as a tensor, because
    # torch computes a number over a tensor as a reciprocal times the number.
    scale = constant(255, torch.float64, images.device) / span.clamp(min=1)
    stretched = (counting(256, torch.float64, images.device) * scale).sub_(low * scale).clamp_(0, 255)
    return torch.where(span > 0, stretched.to(torch.uint8), counting(256, torch.uint8, images.device))


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    table = counting(256, torch.float32, images.device) * beside(factor.float())
    return shared(table.clamp_(0, 255).to(torch.uint8), images)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the mean grey of the image, rounded to an integer level."""
    pixels = constant(images.shape[2] * images.shape[3], torch.float64, images.device)
    grey = beside((luma(images).sum(1) / pixels).add_(0.5).floor_().float())
    table = (counting(256, torch.float32, images.device) - grey).mul_(beside(factor.float())).add_(grey)
    return shared(table.clamp_(0, 255).to(torch.uint8), images)


def equalize(images: Tensor, value: Tensor) -> Tensor:
    """Equalize the histogram as far as integer levels allow; a channel with almost one level does not change."""
    flat = images.flatten(2).long()
    one = constant(1, torch.int32, images.device).expand_as(flat)
    histogram = torch.zeros(*flat.shape[:2], 256, dtype=torch.int32, device=images.device).scatter_add_(2, flat, one)
    lightest = histogram.gather(2, images.flatten(2).amax(2, keepdim=True).long())
    step = (flat.shape[2] - lightest).div_(255, rounding_mode="floor")
    before = histogram.cumsum(2, dtype=torch.int32).sub_(histogram).add_(step >> 1)
    # A float64 quotient of such integers never rounds up to the next one.
    spread = (before / step.clamp(min=1).double()).clamp_(max=255).to(torch.uint8)
    return torch.where(step > 0, spread, counting(256, torch.uint8, images.device))


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    return shared(_posterized(images.device).index_select(0, bits.clamp(0, 8).long()).unsqueeze(1), images)


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    kept = counting(256, torch.float64, images.device) < beside(threshold)
    return shared(torch.where(kept, counting(256, torch.uint8, images.device), _inverted(images.device)), images)


def beside(value: Tensor) -> Tensor:
    return value.view(-1, 1, 1)


def shared(table: Tensor, images: Tensor) -> Tensor:
    """The same table for all channels: (N, 1, 256) -> (N, C, 256)."""
    return table.expand(-1, images.shape[1], -1)


def look_up(images: Tensor, tables: Tensor, value: Tensor) -> Tensor:
    return tables.gather(2, images.flatten(2).long()).view(images.shape)


@lru_cache(maxsize=16)
def _posterized(device: torch.device) -> Tensor:
    """A table for every number of kept bits, 0 to 8."""
    tables = [[level >> 8 - bits << 8 - bits for level in range(256)] for bits in range(9)]
    return torch.tensor(tables, dtype=torch.uint8).to(device)


@lru_cache(maxsize=16)
def _inverted(device: torch.device) -> Tensor:
    return torch.arange(255, -1, -1).byte().to(device)


BUILD = {build.__name__: build for build in (autocontrast, brightness, contrast, equalize, posterize, solarize)}

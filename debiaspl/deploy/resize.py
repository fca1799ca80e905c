"""The resize of training as a tensor program for any height and width, so that it can be part of an exported graph.

``debiaspl.data.decode`` scales an image with Pillow until it just covers the size, and crops the centre. Pillow has
integer weights and rounds twice, after the columns and after the rows; so does this, with the same numbers.
"""

import PIL
import torch
from torch import Tensor

# Pillow stores weights as integers, in units of 2^-22.
_PARTS = float(2**22)
_SUPPORT, _A = 2.0, -0.5
"""Radius and shape of the bicubic filter."""


TALL_FIRST = int(PIL.__version__.partition(".")[0]) >= 13
"""Whether Pillow resizes the rows first if there are far more rows than columns to drop; before, always the columns."""


def cover(images: Tensor, size: tuple[int, int]) -> Tensor:
    """uint8 images (N, C, H, W) of any size, resized to cover ``size`` = (height, width), and cropped to the centre."""
    # As numbers in the graph, which are unknown during export.
    height, width = (torch.full((), side, dtype=torch.float64) for side in images.shape[2:])
    scale = torch.maximum(size[1] / width, size[0] / height)
    across, down = _kept(size[1], width, scale), _kept(size[0], height, scale)
    columns = _weights(images.shape[3], size[1], *across).T
    rows = _weights(images.shape[2], size[0], *down)
    # In float64 all these integers, and all their sums, are exact.
    pixels = images.to(torch.float64)
    covered = _to_bytes(rows @ _to_bytes(pixels @ columns))
    if TALL_FIRST:
        other = _to_bytes(_to_bytes(rows @ pixels) @ columns)
        rows_first = (height > size[0]) & (2 * (width - size[1]) < height - size[0])
        covered = torch.where(rows_first, other, covered)
    return covered.to(torch.uint8)


def _kept(wanted: int, whole: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Where the kept part of a side begins and ends."""
    length = torch.minimum(wanted / scale, whole)
    start = (whole - length) / 2
    # Pillow stores the box in single precision.
    return start.float(), torch.minimum(start + length, whole).float()


def _weights(length: int, out: int, start: Tensor, end: Tensor) -> Tensor:
    """Weight of each of ``length`` pixels for each of ``out`` pixels, (out, length), as integers in units of 2^-22."""
    scale = (end - start).double() / out
    reach = scale.clamp_min(1.0)  # when enlarging, the filter keeps its width
    centre = start.double() + (torch.arange(out, dtype=torch.float64)[:, None] + 0.5) * scale
    place = torch.arange(length, dtype=torch.float64)[None]
    first = (centre - _SUPPORT * reach + 0.5).trunc().clamp_min(0)
    beyond = (centre + _SUPPORT * reach + 0.5).trunc()
    inside = (place >= first) & (place < beyond)
    weights = torch.where(inside, _bicubic((place - centre + 0.5) / reach), 0.0)
    weights = weights / weights.sum(1, keepdim=True)
    # Round half away from zero.
    return (weights.abs() * _PARTS + 0.5).floor() * weights.sign()


def _bicubic(x: Tensor) -> Tensor:
    x = x.abs()
    near = ((_A + 2.0) * x - (_A + 3.0)) * x * x + 1.0
    far = (((x - 5.0) * x + 8.0) * x - 4.0) * _A
    return torch.where(x < 1.0, near, torch.where(x < 2.0, far, 0.0))


def _to_bytes(sums: Tensor) -> Tensor:
    """Round to integer grey values, 0 to 255, still in float64."""
    return ((sums + _PARTS / 2) / _PARTS).floor().clamp(0, 255)

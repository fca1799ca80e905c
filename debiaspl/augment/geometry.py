"""Rotations, shears and translations: one affine matrix per image, and one gather of the nearest pixels.

A matrix is (2, 3): the pixel in column x and row y, both from 0, shows the point (a x + b y + c, d x + e y + f). So c
and f are the origin of the centre of the first pixel: (0.5, 0.5), if nothing moves.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.augment.batch import constant, counting

UNMOVED = ((1, 0, 0.5), (0, 1, 0.5))


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """Rotate about the centre. Pillow rounds the matrix to 15 digits, so that 90 degrees are exact."""
    radians = degrees.remainder(360.0).mul_(-math.pi / 180)
    cos, sin = radians.cos(), radians.sin()
    turn = torch.stack((cos, sin, -sin, cos), 1).round(decimals=15).view(-1, 2, 2)
    middle = constant((images.shape[3] / 2, images.shape[2] / 2), torch.float64, images.device)
    corner = middle - (turn * middle).sum(2)
    centre = corner.add_(turn[:, :, 0], alpha=0.5).add_(turn[:, :, 1], alpha=0.5)
    return torch.cat((turn, centre.unsqueeze(2)), 2)


def shear_x(images: Tensor, slope: Tensor) -> Tensor:
    return moved(slope, ((0, 1, 0.5), (0, 0, 0)))


def shear_y(images: Tensor, slope: Tensor) -> Tensor:
    return moved(slope, ((0, 0, 0), (1, 0, 0.5)))


def translate_x(images: Tensor, pixels: Tensor) -> Tensor:
    return moved(whole(pixels, images.shape[3]), ((0, 0, 1), (0, 0, 0)))


def translate_y(images: Tensor, pixels: Tensor) -> Tensor:
    return moved(whole(pixels, images.shape[2]), ((0, 0, 0), (0, 0, 1)))


def moved(amount: Tensor, where: tuple[tuple[float, ...], ...]) -> Tensor:
    along, still = (constant(entries, torch.float64, amount.device) for entries in (where, UNMOVED))
    return (amount.view(-1, 1, 1) * along).add_(still)


def whole(pixels: Tensor, side: int) -> Tensor:
    """Truncate to whole pixels, as Pillow does without rotation or shear; beyond the side the image is black anyway."""
    return (pixels + 0.5).floor_().clamp_(-side, side)


def nearest(images: Tensor, matrices: Tensor, value: Tensor) -> Tensor:
    """Pillow's `Image.transform` with AFFINE and NEAREST: 16.16 fixed-point coordinates, black outside.

    Points outside are read from a black border, one pixel wide, around a copy: its first pixel is (1, 1) there.
    """
    channels, height, width = images.shape[1:]
    fixed = (matrices * 65536.0).add_(0.5).floor_().int()
    along_x, along_y, start = fixed.view(-1, 2, 3, 1, 1).unbind(2)
    x, y = (counting(side, torch.int32, images.device) for side in (width, height))
    source = (y.unsqueeze(1) * along_y).add_(start).add_(65536) + x * along_x
    source_x, source_y = source.bitwise_right_shift_(16).unbind(1)
    index = source_y.clamp(0, height + 1).mul_(width + 2).add_(source_x.clamp(0, width + 1)).long()
    bordered = F.pad(images, (1, 1, 1, 1)).flatten(2)
    return bordered.gather(2, index.flatten(1).unsqueeze(1).expand(-1, channels, -1)).view(images.shape)


BUILD = {build.__name__: build for build in (rotate, shear_x, shear_y, translate_x, translate_y)}

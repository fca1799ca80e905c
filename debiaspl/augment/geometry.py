"""Rotations, shears and translations: one affine matrix for every image, and one gather of its nearest pixels.

A matrix is (2, 3): the pixel (x, y) is taken from (a x + b y + c, d x + e y + f).
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.augment.batch import constant, counting

UNMOVED = ((1, 0, 0), (0, 1, 0))


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """About the middle of the image. Pillow rounds the matrix to 15 digits, so that 90 degrees are exactly that."""
    radians = degrees.remainder(360.0).mul_(-math.pi / 180)
    cos, sin = radians.cos(), radians.sin()
    turn = torch.stack((cos, sin, -sin, cos), 1).round(decimals=15).view(-1, 2, 2)
    middle = constant((images.shape[3] / 2, images.shape[2] / 2), torch.float64, images.device)
    return torch.cat((turn, (middle - (turn * middle).sum(2)).unsqueeze(2)), 2)


def shear_x(images: Tensor, slope: Tensor) -> Tensor:
    return moved(slope, ((0, 1, 0), (0, 0, 0)))


def shear_y(images: Tensor, slope: Tensor) -> Tensor:
    return moved(slope, ((0, 0, 0), (1, 0, 0)))


def translate_x(images: Tensor, pixels: Tensor) -> Tensor:
    return moved(whole(pixels, images.shape[3]), ((0, 0, 1), (0, 0, 0)))


def translate_y(images: Tensor, pixels: Tensor) -> Tensor:
    return moved(whole(pixels, images.shape[2]), ((0, 0, 0), (0, 0, 1)))


def moved(amount: Tensor, where: tuple[tuple[int, ...], ...]) -> Tensor:
    along, still = (constant(entries, amount.dtype, amount.device) for entries in (where, UNMOVED))
    return (amount.view(-1, 1, 1) * along).add_(still)


def whole(pixels: Tensor, side: int) -> Tensor:
    """Pillow copies whole pixels where nothing turns or leans; past the side the image is black anyway."""
    return (pixels + 0.5).floor_().clamp_(-side, side)


def nearest(images: Tensor, matrices: Tensor, value: Tensor) -> Tensor:
    """Pillow's `Image.transform` with AFFINE and NEAREST: 16.16 fixed point from pixel centres, black outside.

    What is outside lands on a black border of one pixel, in a copy.
    """
    count, channels, height, width = images.shape
    x, y, start = _fixed_point(matrices)
    right, down = (counting(side, torch.int32, images.device) for side in (width, height))
    source_x, source_y = (start + y * down.unsqueeze(1) + x * right).bitwise_right_shift_(16).unbind(1)
    index = source_y.clamp(0, height + 1).mul_(width + 2).add_(source_x.clamp(0, width + 1)).long()
    bordered = F.pad(images, (1, 1, 1, 1)).flatten(2)
    return bordered.gather(2, index.view(count, 1, -1).expand(-1, channels, -1)).view(images.shape)


def _fixed_point(matrices: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Steps per x and y, and the start at the centre of pixel (0, 0), which lies at (1, 1) of the bordered copy."""
    x, y, start = matrices.unbind(2)
    coefficients = torch.stack((x, y, start + x * 0.5 + y * 0.5))
    x, y, start = coefficients.mul_(65536.0).add_(0.5).floor_().int().view(3, -1, 2, 1, 1).unbind()
    return x, y, start.add_(65536)


BUILD = {
    "rotate": rotate,
    "shear_x": shear_x,
    "shear_y": shear_y,
    "translate_x": translate_x,
    "translate_y": translate_y,
}

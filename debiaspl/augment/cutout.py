"""Cutout: a grey square that hides a part of the image."""

import torch
from torch import Tensor

from debiaspl.augment.batch import constant, counting

GREY = 127


def squares(fraction: Tensor, centre: Tensor, images: Tensor) -> Tensor:
    """Each square's first row and the row after its last, then the same of columns: (2, 2, N), maybe past the border.

    `fraction` is the share of the side that a square takes, (N,); `centre`, uniform in [0, 1), places it, (2, N).
    """
    height, width = images.shape[2:]
    sides = constant(((height,), (width,)), torch.float64, images.device)
    size = (sides * fraction).round_().int()
    first = (sides * centre).int().sub_(size >> 1)
    return torch.stack((first, first + size), 1)


def hide_(images: Tensor, box: Tensor) -> Tensor:
    """Paint the squares, in place."""
    height, width = images.shape[2:]
    top, bottom, left, right = box.reshape(4, -1, 1, 1, 1).unbind()
    y, x = counting(height, torch.int32, images.device).unsqueeze(1), counting(width, torch.int32, images.device)
    rows, columns = (y >= top) & (y < bottom), (x >= left) & (x < right)
    # Hidden bytes become 255, then 127. A masked fill of bytes takes twenty times as long on a CPU.
    hidden = (rows.view(torch.uint8) & columns.view(torch.uint8)).mul_(255)
    return images.bitwise_or_(hidden).bitwise_xor_(hidden.bitwise_and_(255 - GREY))

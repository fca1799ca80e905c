"""Colour and sharpness: each pixel is a blend of the image and a duller version of it."""

import torch
from torch import Tensor

from debiaspl.augment.batch import constant


def grey(images: Tensor, factor: Tensor) -> Tensor:
    return luma(images).to(torch.uint8).view(-1, 1, *images.shape[2:]).expand_as(images)


def luma(images: Tensor) -> Tensor:
    """Pillow's mode "L", (N, H W) of int32: the weights of ITU-R 601 in 1/65536, rounded."""
    if images.shape[1] == 1:
        return images.flatten(1).int()
    weights = constant(((19595,), (38470,), (7471,)), torch.int32, images.device)
    total = images.flatten(2).int().mul_(weights).sum(1, dtype=torch.int32)
    return total.add_(1 << 15).bitwise_right_shift_(16)


def smooth(images: Tensor, factor: Tensor) -> Tensor:
    """Pillow's `ImageFilter.SMOOTH`: a pixel times five plus its eight neighbours, over 13; borders do not change."""
    smoothed = images.clone()
    if min(images.shape[2:]) < 3:
        return smoothed
    wide = images.short()
    rows = (wide[:, :, :-2] + wide[:, :, 1:-1]).add_(wide[:, :, 2:])
    total = (rows[..., :-2] + rows[..., 1:-1]).add_(rows[..., 2:]).add_(wide[:, :, 1:-1, 1:-1], alpha=4)
    # total / 13, rounded: for all possible sums of thirteen bytes, a product and a shift give the same.
    smoothed[:, :, 1:-1, 1:-1] = total.int().mul_(80660).add_(1 << 19).bitwise_right_shift_(20)
    return smoothed


def towards(images: Tensor, dull: Tensor, factor: Tensor) -> Tensor:
    """Pillow's `Image.blend` in float32, with one rounding for the product and one for the sum.

    So lerp and addcmul cannot be used: they round once.
    """
    start = dull.float()
    return to_bytes((images.float() - start).mul_(factor.float().view(-1, 1, 1, 1)).add_(start))


def to_bytes(levels: Tensor) -> Tensor:
    """Clip and truncate; via int32, which is three times as fast on a CPU."""
    return levels.clamp_(0, 255).int().to(torch.uint8)


BUILD = {"color": grey, "sharpness": smooth}

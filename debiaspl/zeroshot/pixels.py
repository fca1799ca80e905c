"""Pictures in the size a teacher wants, batch by batch."""

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.data import ImageSet, LazyImages, in_order
from debiaspl.zeroshot.teacher import Progress


def sized(images: ImageSet, size: int) -> ImageSet:
    """Images in files are read at this size; those in memory are what they are."""
    if not isinstance(images.images, LazyImages):
        return images
    return replace(images, images=replace(images.images, size=(size, size), channels=3))


def to_size(pictures: Tensor, size: int) -> Tensor:
    """uint8 (N, C, H, W) as colour pictures of one size: scaled until they just cover it, the centre of that."""
    if pictures.shape[1] == 1:
        pictures = pictures.expand(-1, 3, -1, -1)
    height, width = pictures.shape[2:]
    if (height, width) == (size, size):
        return pictures
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = pictures[:, :, top : top + side, left : left + side].float()
    scaled = F.interpolate(square, (size, size), mode="bicubic", antialias=True, align_corners=False)
    return scaled.round_().clamp_(0, 255).to(torch.uint8)


def predicted_in_order(
    predict: Callable[[Tensor], Tensor],
    images: ImageSet,
    size: int,
    columns: int,
    batch: int,
    what: str,
    progress: Progress,
) -> tuple[Tensor, dict[int, str]]:
    """``predict(uint8 pictures)`` of all images, (N, columns) on the CPU; and why some could not be read: their rows
    are even."""
    found = torch.full((len(images), columns), 1 / columns)
    skipped: dict[int, str] = {}
    for drawn in in_order(sized(images, size), batch):
        if len(drawn.positions):
            found[drawn.positions] = predict(to_size(drawn.pictures[0], size)).float().cpu()
        skipped |= drawn.skipped
        progress(what, int(drawn.positions[-1]) + 1 if len(drawn.positions) else 0, len(images))
    return found, skipped

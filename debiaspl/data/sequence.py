"""Image sets from data sets of other libraries: Hugging Face ``datasets``, torchvision, or any sequence of pairs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from debiaspl.data.decode import BadImage, as_pixels
from debiaspl.data.images import UNLABELED, ImageSet
from debiaspl.data.lazy import room_for
from debiaspl.data.text import DataError

IMAGES, LABELS = ("image", "img"), ("label", "labels", "fine_label")


def read_sequence(
    dataset: Any,
    size: int | tuple[int, int] | None,
    channels: int,
    columns: tuple[str | None, str | None],
    classes: Sequence[str],
) -> ImageSet:
    """``ImageSet.from_dataset``."""
    try:
        count = len(dataset)
    except TypeError:
        kind = type(dataset).__name__
        raise DataError(f"the data set is a {kind} without a length, expected items by number, and len().") from None
    if not count:
        raise DataError("the data set is empty, expected items of an image and a label.")
    if channels not in (1, 3):
        raise DataError(f"channels is {channels}, expected 1 or 3.")
    labels = []
    pixels, sides = torch.empty(0), (size, size) if isinstance(size, int) else size
    for number in range(count):
        picture, known = _pair(dataset[number], number, columns)
        try:
            made = as_pixels(_opened(picture), sides, channels)
        except (BadImage, TypeError, ValueError) as error:
            raise DataError(f"item {number} of the data set is no image: {error}") from error
        if number == 0:
            pixels, sides = room_for((count, *made.shape)), (made.shape[1], made.shape[2])
        pixels[number] = made
        labels.append(known)
    return _labeled(pixels, labels, tuple(classes) or _names(dataset, columns[1]))


def _pair(item: Any, number: int, columns: tuple[str | None, str | None]) -> tuple[Any, Any]:
    """The image and the label of an item."""
    if isinstance(item, Mapping):
        names = []
        for column, usual, what in zip(columns, (IMAGES, LABELS), ("image", "label"), strict=True):
            name = column or next((name for name in usual if name in item), "")
            if name not in item:
                found = f"item {number} has the columns {', '.join(map(str, item))}"
                raise DataError(f"{found}, and none is its {what}. Name it: from_dataset(..., {what}='COLUMN').")
            names.append(name)
        return item[names[0]], item[names[1]]
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0], item[1]
    raise DataError(f"item {number} is a {type(item).__name__}, expected (image, label), or columns by name.")


def _opened(picture: Any) -> Image.Image:
    """The image as one of Pillow: it may also be an array, (H, W), (H, W, C) or (C, H, W)."""
    if isinstance(picture, Image.Image):
        return picture
    values = picture if isinstance(picture, Tensor) else np.array(picture)  # a writable copy
    bytes_of = ImageSet.of(values[None], None).images
    assert isinstance(bytes_of, Tensor)
    grey = bytes_of.shape[1] == 1
    return Image.fromarray((bytes_of[0, 0] if grey else bytes_of[0].permute(1, 2, 0)).cpu().numpy())


def _names(dataset: Any, label: str | None) -> tuple[str, ...]:
    """Class names, as ``datasets`` or torchvision give them."""
    features = getattr(dataset, "features", None)
    if isinstance(features, Mapping):
        column = label or next((name for name in LABELS if name in features), "")
        return tuple(getattr(features.get(column), "names", None) or ())
    return tuple(map(str, getattr(dataset, "classes", ())))


def _labeled(pixels: Tensor, labels: list[Any], names: tuple[str, ...]) -> ImageSet:
    """Labels may be class numbers or names; -1, None or an empty name for none."""
    texts = sorted({label for label in labels if isinstance(label, str)} - {""})
    names = names or tuple(texts)
    if unknown := sorted(set(texts) - set(names)):
        raise DataError(f"labels are {', '.join(unknown[:3])}, expected some of {', '.join(names)}.")
    numbers: dict[Any, int] = {None: UNLABELED, "": UNLABELED, UNLABELED: UNLABELED}
    numbers |= {name: number for number, name in enumerate(names)}
    try:
        found = torch.tensor([numbers[label] if texts else numbers.get(label, label) for label in labels])
        if bool((found != found.long()).any()):
            raise ValueError("no whole number")
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"a label is {error}, expected class numbers or names, and -1 or None for no label.") from None
    most = int(found.max())
    classes = names if most >= 0 or len(names) > 1 else ()
    return ImageSet(pixels, found.long(), classes or tuple(map(str, range(most + 1))))

"""Packed sets: images of one size as raw bytes in a memory-mapped file, for sets that do not fit in memory.

A packed folder contains ``images.bin`` (uint8, N x C x H x W, no header) and ``index.json``. Two threads read 100,000
images of 96 x 96 a second from it, where JPEGs in folders or tar shards give 900.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from debiaspl.data.errors import DataError
from debiaspl.data.feed import in_order
from debiaspl.data.images import ImageSet
from debiaspl.data.lazy import LazyImages
from debiaspl.files import parse_json, write_text, write_whole
from debiaspl.files.whole import PARTIAL

FORMAT = 2
INDEX, PIXELS = "index.json", "images.bin"


@dataclass(frozen=True, eq=False)
class PackedImages:
    """Replaces the tensor of an ``ImageSet``: indexed like one, read through the disk cache."""

    path: Path
    positions: Tensor
    """Indices of the images, in order."""
    picture: tuple[int, int, int]
    """Channels, height and width."""

    dtype = torch.uint8
    device = torch.device("cpu")

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self.positions), *self.picture

    def select(self, positions: Tensor) -> "PackedImages":
        return replace(self, positions=self.positions[positions])

    def joined(self, other: "PackedImages") -> "PackedImages":
        """With more images of the same file."""
        return replace(self, positions=torch.cat((self.positions, other.positions)))

    def is_same(self, other: "PackedImages") -> bool:
        return self.path == other.path and torch.equal(self.positions, other.positions)

    def digest(self) -> bytes:
        """Of the positions and of images at even distances."""
        some = self._pixels[:: max(1, len(self._pixels) // 1000)]
        return hashlib.blake2b(self.positions.numpy().tobytes() + some.tobytes(), digest_size=16).digest()

    def __getitem__(self, positions: Tensor) -> Tensor:
        return torch.from_numpy(self._pixels[self.positions[positions].numpy()])

    @cached_property
    def _pixels(self) -> NDArray[np.uint8]:
        return np.asarray(np.memmap(self.path, np.uint8, "r")).reshape(-1, *self.picture)


def pack(batches: Iterable[tuple[Tensor, list[int], list[str]]], classes: tuple[str, ...], out: Path) -> int:
    """Write batches of (images, labels, ids) as a packed folder, and return the number of images. The index is written
    last: with it, the folder is complete."""
    refuse_packing_over(out)
    labels, ids, picture = list[int](), list[str](), tuple[int, ...]()

    def write(file: BinaryIO) -> None:
        nonlocal picture
        for images, own_labels, own_ids in batches:
            picture = tuple(images.shape[1:])
            file.write(images.numpy().tobytes())
            labels.extend(own_labels)
            ids.extend(own_ids)
        if not ids:
            raise DataError("no image could be read, so there is nothing to pack.")

    try:
        write_whole(out / PIXELS, write)
        index = {"format": FORMAT, "picture": picture, "classes": classes, "labels": labels, "ids": ids}
        write_text(out / INDEX, json.dumps(index))
    except BaseException:
        with suppress(OSError):
            for name in (INDEX, PIXELS):
                (out / name).unlink(missing_ok=True)
            out.rmdir()
        raise
    return len(ids)


def refuse_packing_over(out: Path) -> None:
    """Raise where ``out`` exists, unless it is what a killed process has left."""
    begun = out.is_dir() and all(path.name == PIXELS or PARTIAL.fullmatch(path.name) for path in out.iterdir())
    if os.path.lexists(out) and not begun:
        raise DataError(f"{out} exists already. Choose another name, or remove it.")


def pack_files(
    images: ImageSet, out: Path, progress: Callable[[int], None] = lambda done: None
) -> tuple[int, dict[str, str]]:
    """Pack images from files; returns their number, and a reason for each that could not be read."""
    assert isinstance(images.images, LazyImages)
    skipped: dict[str, str] = {}

    def batches() -> Iterator[tuple[Tensor, list[int], list[str]]]:
        done = 0
        for drawn in in_order(images, 256):
            skipped.update({images.ids[place]: reason for place, reason in drawn.skipped.items()})
            done += len(drawn.positions) + len(drawn.skipped)
            if len(drawn.positions):
                places = drawn.positions.tolist()
                yield drawn.pictures[0], images.labels[drawn.positions].tolist(), [images.ids[k] for k in places]
            progress(done)

    return pack(batches(), images.classes, out), skipped


def open_packed(folder: Path) -> ImageSet:
    """A packed folder as an image set whose pixels stay on disk."""
    try:
        picture, classes, labels, ids = _checked(parse_json((folder / INDEX).read_text()))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{folder / INDEX} is missing or damaged ({error}). Pack the set again.") from error
    path = folder / PIXELS
    size, expected = path.stat().st_size if path.is_file() else 0, len(ids) * math.prod(picture)
    if size != expected:
        raise DataError(f"{path} has {size:,} bytes, expected {expected:,}. Pack the set again.")
    return ImageSet(PackedImages(path, torch.arange(len(ids)), picture), torch.tensor(labels), classes, ids)


def _checked(index: Any) -> tuple[tuple[int, int, int], tuple[str, ...], list[int], tuple[str, ...]]:
    """Picture, classes, labels and ids, after checking them."""
    picture, classes, labels, ids = (index[name] for name in ("picture", "classes", "labels", "ids"))
    _expect(index["format"] == FORMAT, f"its format is not {FORMAT}")
    sides = _is_list(picture, int) and len(picture) == 3 and picture[0] in (1, 3) and min(picture) > 0
    _expect(sides, "'picture' is not channels, height and width")
    _expect(_is_list(classes, str) and len(set(classes)) == len(classes) >= 2, "'classes' are not different names")
    _expect(_is_list(ids, str) and 0 < len(set(ids)) == len(ids), "'ids' are not different names")
    numbers = _is_list(labels, int) and len(labels) == len(ids) and -1 <= min(labels) <= max(labels) < len(classes)
    _expect(numbers, "'labels' are not a class number, or -1, for each image")
    return (picture[0], picture[1], picture[2]), tuple(classes), labels, tuple(ids)


def _is_list(value: Any, kind: type) -> bool:
    # True is a number in Python, but an error here.
    return isinstance(value, list) and all(type(one) is kind for one in value)


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)

"""Packed sets: images of one size in a memory-mapped array, for sets that do not fit in memory.

A packed folder contains ``images.npy`` (uint8, N x C x H x W) and ``index.json``. Two threads read 100,000 images of
96 x 96 a second from it, where JPEGs in folders or tar shards give 900.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from debiaspl.data.images import ImageSet, StoredImages
from debiaspl.data.lazy import LazyImages, in_order
from debiaspl.data.text import DataError
from debiaspl.files import parse_json, write_text, write_whole
from debiaspl.files.whole import PARTIAL

INDEX, PIXELS = "index.json", "images.npy"


@dataclass(frozen=True, eq=False)
class PackedImages(StoredImages):
    """Replaces the tensor of an ``ImageSet``: indexed like one, read through the disk cache."""

    path: Path
    positions: Tensor
    """Indices of the images, in order."""
    picture: tuple[int, int, int]
    """Channels, height and width."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self.positions), *self.picture

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
        return np.asarray(np.load(self.path, mmap_mode="r"))


def pack(batches: Iterable[tuple[Tensor, list[int], list[str]]], classes: tuple[str, ...], out: Path) -> int:
    """Write batches of (images, labels, ids) as a packed folder, and return the number of images. The index is written
    last: with it, the folder is complete."""
    refuse_packing_over(out)
    labels, ids = list[int](), list[str]()

    def write(file: BinaryIO) -> None:
        for images, own_labels, own_ids in batches:
            if not ids:
                _write_header(file, (0, *images.shape[1:]))
            file.write(images.numpy().tobytes())
            labels.extend(own_labels)
            ids.extend(own_ids)
        if not ids:
            raise DataError("no image could be read, so there is nothing to pack.")
        file.seek(0)
        _write_header(file, (len(ids), *images.shape[1:]))

    try:
        write_whole(out / PIXELS, write)
        write_text(out / INDEX, json.dumps({"classes": classes, "labels": labels, "ids": ids}))
    except BaseException:
        with suppress(OSError):
            for name in (INDEX, PIXELS):
                (out / name).unlink(missing_ok=True)
            out.rmdir()
        raise
    return len(ids)


def _write_header(file: BinaryIO, shape: tuple[int, ...]) -> None:
    """The header of an array; NumPy leaves room in it for a larger number of images."""
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})


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
        index, path = parse_json((folder / INDEX).read_text()), folder / PIXELS
        with np.errstate(over="raise"):  # a header may claim any shape
            pixels = np.load(path, mmap_mode="r")
        if pixels.dtype != np.uint8 or not pixels.flags.c_contiguous:
            raise ValueError(f"{PIXELS} contains {pixels.dtype}, expected bytes, image by image")
        for names in (index["classes"], index["ids"]):
            if not isinstance(names, list) or len({name for name in names if isinstance(name, str)}) < max(
                len(names), 1
            ):
                raise ValueError("its classes or ids are not different names")
        images = PackedImages(path, torch.arange(len(pixels)), pixels.shape[1:])
        return ImageSet(images, torch.tensor(index["labels"]), tuple(index["classes"]), tuple(index["ids"]))
    except Exception as error:  # damaged headers and numbers fail in many ways
        raise DataError(f"{folder / INDEX} or {PIXELS} is missing or damaged ({error}). Pack the set again.") from error

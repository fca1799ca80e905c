"""Packed sets: images of one size in a memory-mapped array, for sets that do not fit in memory.

A packed folder contains ``images.npy`` (uint8, N x C x H x W) and ``index.json``. Two threads read 100,000 images of
96 x 96 a second from it, where JPEGs in folders or tar shards give 900.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from debiaspl.data.images import ImageSet, StoredImages
from debiaspl.data.lazy import Progress, in_order, unseen
from debiaspl.data.text import DataError
from debiaspl.files import parse_json, write_text, write_whole
from debiaspl.files.whole import PARTIAL

INDEX, PIXELS = "index.json", "images.npy"


@dataclass(frozen=True, eq=False)
class PackedImages(StoredImages):
    """Replaces the tensor of an ``ImageSet``: indexed like one, read through the disk cache."""

    path: Path
    positions: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.positions), *self._pixels.shape[1:]

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


def pack(images: ImageSet, out: Path, progress: Progress = unseen) -> tuple[int, dict[str, str]]:
    """Write images as a packed folder; returns their number, and a reason for each that could not be read. The index is
    written last: with it, the folder is complete."""
    refuse_packing_over(out)
    kept, skipped = list[int](), dict[str, str]()
    picture = images.images.shape[1:]

    def write(file: BinaryIO) -> None:
        _write_header(file, (0, *picture))
        for drawn in in_order(images, 256):
            file.write(drawn.pictures[0].numpy().tobytes())
            kept.extend(drawn.positions.tolist())
            skipped.update({images.ids[place]: reason for place, reason in drawn.skipped.items()})
            progress(len(kept) + len(skipped), len(images))
        if not kept:
            raise DataError("no image could be read, so there is nothing to pack.")
        file.seek(0)
        _write_header(file, (len(kept), *picture))

    write_whole(out / PIXELS, write)
    index = {"classes": images.classes, "labels": images.labels[kept].tolist()}
    write_text(out / INDEX, json.dumps(index | {"ids": [images.ids[place] for place in kept]}))
    return len(kept), skipped


def _write_header(file: BinaryIO, shape: tuple[int, ...]) -> None:
    """The header of an array; NumPy leaves room in it for a larger number of images."""
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})


def refuse_packing_over(out: Path) -> None:
    """Raise where ``out`` exists, unless it is what a killed process has left."""
    begun = out.is_dir() and all(path.name == PIXELS or PARTIAL.fullmatch(path.name) for path in out.iterdir())
    if os.path.lexists(out) and not begun:
        raise DataError(f"{out} exists already. Choose another name, or remove it.")


def open_packed(folder: Path) -> ImageSet:
    """A packed folder as an image set whose pixels stay on disk."""
    try:
        index, path = parse_json((folder / INDEX).read_text()), folder / PIXELS
        with np.errstate(over="raise"):  # a header may claim any shape
            pixels = np.load(path, mmap_mode="r")
        if pixels.dtype != np.uint8 or not pixels.flags.c_contiguous:
            raise ValueError(f"{PIXELS} contains {pixels.dtype}, expected bytes, image by image")
        for names in (index["classes"], index["ids"]):
            different = {name for name in names if isinstance(name, str)} if isinstance(names, list) else ()
            if not 0 < len(names) == len(different):
                raise ValueError("its classes or ids are not different names")
        images = PackedImages(path, torch.arange(len(pixels)))
        return ImageSet(images, torch.tensor(index["labels"]), tuple(index["classes"]), tuple(index["ids"]))
    except Exception as error:  # damaged headers and numbers fail in many ways
        raise DataError(f"{folder / INDEX} or {PIXELS} is missing or damaged ({error}). Pack the set again.") from error

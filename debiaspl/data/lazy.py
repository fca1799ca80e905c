"""Images that stay in their files until they are needed."""

import hashlib
import math
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from debiaspl.data.decode import BadImage, decode, open_image, pillow_keeps_quiet
from debiaspl.data.errors import DataError
from debiaspl.data.images import StoredImages
from debiaspl.files import memory

LARGE_FILE = 50_000_000
"""Size in bytes from which on the free memory is checked."""


PART = 1024
"""In bytes: how much of a file is read for a digest."""
MOST_SIZES, MOST_CONTENTS = 200_000, 10_000
"""Files of a set whose size, and whose content, is part of its digest."""


class Files(Protocol):
    """Image files by position, readable from any process."""

    def __len__(self) -> int: ...

    def stamp(self, position: int) -> tuple[int, int]:
        """Size in bytes and time of the last change, in nanoseconds: a file whose stamp is the same is not read again.
        (-1, -1) if there is no such file."""

    def read(self, position: int) -> bytes: ...

    def mark(self, position: int, content: bool) -> bytes:
        """The size of a file and, with ``content``, a part of it."""
        ...


@dataclass(frozen=True)
class FolderFiles:
    """The files of a folder."""

    root: Path
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def stamp(self, position: int) -> tuple[int, int]:
        try:
            found = (self.root / self.names[position]).stat()
        except OSError:
            return -1, -1
        # Unpacking and copying may set the time of the content, but not that of the file.
        return found.st_size, max(found.st_mtime_ns, found.st_ctime_ns)

    def read(self, position: int) -> bytes:
        try:
            path = self.root / self.names[position]
            size = path.stat().st_size
            if size > LARGE_FILE and not memory.fits(size):
                free = memory.gigabytes(memory.free_memory())
                raise BadImage(f"the file has {memory.gigabytes(size)}, but only {free} of memory are free")
            return path.read_bytes()
        except OSError as error:
            raise BadImage(f"cannot be opened: {error.strerror or error}") from error

    def mark(self, position: int, content: bool) -> bytes:
        path = self.root / self.names[position]
        try:
            size = path.stat().st_size
            if not content:
                return b"%d" % size
            with path.open("rb") as file:
                file.seek(size // 2)
                return b"%d " % size + file.read(PART)
        except OSError:
            return b"?"


@dataclass(frozen=True, eq=False)
class LazyImages(StoredImages):
    """Replaces the tensor of an ``ImageSet`` if its images do not fit in memory: indexed like one, read on demand."""

    files: Files
    positions: Tensor
    """Indices of the files, in order."""
    size: tuple[int, int]
    """Height and width of all images."""
    channels: int = 3

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self.positions), self.channels, *self.size

    def is_same(self, other: "LazyImages") -> bool:
        return self.files == other.files and torch.equal(self.positions, other.positions)

    def digest(self) -> bytes:
        """Of the sizes of the files, and of a part of each; of large sets, of some files at even distances."""
        found = hashlib.blake2b(digest_size=16)
        sizes, contents = (max(1, len(self.positions) // most) for most in (MOST_SIZES, MOST_CONTENTS))
        for place, position in enumerate(self.positions[::sizes].tolist()):
            found.update(self.files.mark(position, place * sizes % contents < sizes) + b"\0")
        return found.digest()

    def __getitem__(self, positions: Tensor) -> Tensor:
        """The whole images; a file that cannot be read raises an error here."""
        made = []
        for position in positions.tolist():
            try:
                made.append(self.picture(position))
            except BadImage as error:
                raise DataError(f"image {position} cannot be read: {error}. Remove or replace it.") from error
        return torch.stack(made)

    def picture(self, position: int) -> Tensor:
        """One whole image, at the common size: uint8, (C, H, W). Raises BadImage if it cannot be read."""
        return decode(self.files.read(int(self.positions[position])), self.size, self.channels)

    def with_size_of_first(self) -> "LazyImages":
        """The same images, with the size of the first readable one."""
        reason = "there are no images"
        for position in self.positions.tolist():
            try:
                first = open_image(self.files.read(position), None, self.channels)
                return replace(self, size=(first.height, first.width))
            except BadImage as error:
                reason = str(error)
        raise DataError(f"none of {len(self.positions)} images can be read. The last: {reason}.")

    def load(self, positions: Tensor, seed: int, out: Tensor) -> tuple[list[int], dict[int, str]]:
        """Read these images, and write random resized crops of each into ``out``, uint8, (crops, N, C, H, W).

        Each image has its own generator: the first is seeded with ``seed``, the others with the following numbers. A
        file that cannot be read is replaced by the next readable one, so that batches keep their size. Returns the
        positions of the images that were used, and why others could not be read.
        """
        used: list[int] = []
        skipped: dict[int, str] = {}
        arrays = out.numpy()
        with pillow_keeps_quiet:  # once per batch, since it costs as much as a small image
            for place, position in enumerate(positions.tolist()):
                used.append(self._fill(arrays[:, place], position, Random(seed + place), skipped))
        return used, skipped

    def _fill(self, out: NDArray[np.uint8], position: int, random: Random, skipped: dict[int, str]) -> int:
        """Write crops, (crops, C, H, W), of this image or of the next readable one; returns its position."""
        for step in range(len(self.positions)):
            actual = (position + step) % len(self.positions)
            try:
                content = self.files.read(int(self.positions[actual]))
                image = open_image(content, None, self.channels)
            except BadImage as error:
                skipped[actual] = str(error)
                continue
            for picture in out:
                picture[...] = _channels_first(_resized_crop(image, self.size, random))
            return actual
        raise DataError(f"none of {len(self.positions)} images can be read. The first: {skipped[position]}.")


def _resized_crop(image: Image.Image, size: tuple[int, int], random: Random) -> Image.Image:
    box = resized_crop_box(image.width, image.height, random)
    return image.resize((size[1], size[0]), Image.Resampling.BILINEAR, box=box)


def _channels_first(image: Image.Image) -> NDArray[np.uint8]:
    pixels = np.asarray(image)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def resized_crop_box(width: int, height: int, random: Random) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a random part with 20 to 100 % of the area and an aspect ratio of 3:4 to 4:3.

    The weak view of the ImageNet recipes. Ten draws; if none fits, the largest centred part with an allowed ratio.
    """
    for _ in range(10):
        area = width * height * random.uniform(0.2, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = math.sqrt(area * ratio), math.sqrt(area / ratio)
        if w <= width and h <= height:
            left, top = random.uniform(0, width - w), random.uniform(0, height - h)
            return left, top, left + w, top + h
    w, h = min(width, height * 4 / 3), min(height, width * 4 / 3)
    return (width - w) / 2, (height - h) / 2, (width + w) / 2, (height + h) / 2

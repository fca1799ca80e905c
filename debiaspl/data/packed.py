"""Packed sets: images of one size as raw bytes in memory-mapped shards, for fast repeated use.

A packed folder contains ``images-00000.bin``, ... (uint8, N x C x H x W, no header), and ``index.json``, which is
written last: if it exists, the folder is complete.
"""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from debiaspl.data.decode import BadImage, decode
from debiaspl.data.errors import DataError
from debiaspl.data.images import ImageSet
from debiaspl.data.lazy import LazyImages
from debiaspl.files import exists_already, new_folder, parse_json

FORMAT = 1
SHARD_BYTES = 1 << 30
INDEX = "index.json"
SHARD = re.compile(r"images-\d{5,}\.bin")


@dataclass(frozen=True, eq=False)
class PackedImages:
    """Replaces the tensor of an ``ImageSet``: indexed like one, read through the disk cache."""

    paths: tuple[Path, ...]
    per_shard: int
    positions: Tensor
    """Indices of the images, in order."""
    picture: tuple[int, int, int]
    """Channels, height and width."""
    _maps: dict[int, NDArray[np.uint8]] = field(default_factory=dict)

    dtype = torch.uint8
    device = torch.device("cpu")

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self.positions), *self.picture

    def select(self, positions: Tensor) -> "PackedImages":
        return replace(self, positions=self.positions[positions])

    def joined(self, other: "PackedImages") -> "PackedImages":
        """With more images of the same files."""
        return replace(self, positions=torch.cat((self.positions, other.positions)))

    def is_same(self, other: "PackedImages") -> bool:
        return self.paths == other.paths and torch.equal(self.positions, other.positions)

    def __getitem__(self, positions: Tensor) -> Tensor:
        wanted = self.positions[positions].numpy()
        found = np.empty((len(wanted), *self.picture), np.uint8)
        shards = wanted // self.per_shard
        for number in np.unique(shards):
            here = shards == number
            found[here] = self._map(int(number))[wanted[here] % self.per_shard]
        return torch.from_numpy(found)

    def _map(self, number: int) -> NDArray[np.uint8]:
        if number not in self._maps:
            flat = np.memmap(self.paths[number], np.uint8, "r")
            self._maps[number] = flat.reshape(-1, *self.picture)
        return self._maps[number]


def pack(
    batches: Iterable[tuple[Tensor, list[int], list[str]]],
    classes: tuple[str, ...],
    out: Path,
    shard_bytes: int = SHARD_BYTES,
    progress: Callable[[int], None] = lambda done: None,
    overwrite: bool = False,
) -> int:
    """Write batches of (images, labels, ids) as a packed folder, and return the number of images.

    Everything is written to a folder beside ``out``, which is renamed when it is complete; an error leaves nothing.
    With ``overwrite`` it replaces an earlier packed folder, which stays until then.
    """
    refuse_packing_over(out, overwrite)
    try:
        with new_folder(out) as partial:
            return _write(batches, classes, partial, shard_bytes, progress)
    except OSError as error:
        raise DataError(f"could not write {out}: {error.strerror or error}. Nothing was left behind.") from error


def refuse_packing_over(out: Path, overwrite: bool) -> None:
    """Raise where ``out`` exists, unless it is a packed folder that may be overwritten."""
    if not out.exists():
        return
    packed = out.is_dir() and not out.is_symlink() and (out / INDEX).is_file()
    if not packed or not all(path.name == INDEX or SHARD.fullmatch(path.name) for path in out.iterdir()):
        raise DataError(
            f"{out} exists already and is not a packed folder, or contains other files too, so it is not overwritten. "
            "Choose another name."
        )
    if not overwrite:
        raise DataError(exists_already(out, "packed images"))


def pack_files(
    images: ImageSet, out: Path, progress: Callable[[int], None] = lambda done: None, overwrite: bool = False
) -> tuple[int, dict[str, str]]:
    """Pack images from files; returns their number, and a reason for each that could not be read."""
    assert isinstance(images.images, LazyImages)
    lazy, skipped = images.images, {}

    def read(position: int) -> Tensor | None:
        try:
            return decode(lazy.files.read(int(lazy.positions[position])), lazy.size, lazy.channels)
        except BadImage as error:
            skipped[images.ids[position]] = str(error)
            return None

    def batches() -> Iterator[tuple[Tensor, list[int], list[str]]]:
        with ThreadPoolExecutor() as pool:
            for positions in torch.split(torch.arange(len(images)), 256):
                found = list(zip(positions.tolist(), pool.map(read, positions.tolist()), strict=True))
                kept = [(position, picture) for position, picture in found if picture is not None]
                if kept:
                    labels = [int(images.labels[position]) for position, _ in kept]
                    yield torch.stack([picture for _, picture in kept]), labels, [images.ids[k] for k, _ in kept]

    return pack(batches(), images.classes, out, progress=progress, overwrite=overwrite), skipped


def _write(
    batches: Iterable[tuple[Tensor, list[int], list[str]]],
    classes: tuple[str, ...],
    folder: Path,
    shard_bytes: int,
    progress: Callable[[int], None],
) -> int:
    labels: list[int] = []
    ids: list[str] = []
    picture: tuple[int, ...] = ()
    per_shard = 1
    for images, own_labels, own_ids in batches:
        if not picture:
            picture = tuple(images.shape[1:])
            per_shard = max(shard_bytes // images[0].numel(), 1)
        start = 0
        while start < len(images):
            shard, used = divmod(len(ids) + start, per_shard)
            part = images[start : start + per_shard - used]
            with (folder / _shard_name(shard)).open("ab") as file:
                file.write(part.numpy().tobytes())
            start += len(part)
        labels += own_labels
        ids += own_ids
        progress(len(ids))
    if not ids:
        raise DataError("no image could be read, so there is nothing to pack.")
    index = {
        "format": FORMAT,
        "picture": picture,
        "per_shard": per_shard,
        "classes": classes,
        "labels": labels,
        "ids": ids,
    }
    with (folder / INDEX).open("w") as file:
        json.dump(index, file)
        file.flush()
        os.fsync(file.fileno())
    return len(ids)


def _shard_name(number: int) -> str:
    return f"images-{number:05d}.bin"


def open_packed(folder: Path) -> ImageSet:
    """A packed folder as an image set whose pixels stay on disk."""
    try:
        index = parse_json((folder / INDEX).read_text())
        picture, classes, labels, ids, per_shard = _checked(index)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{folder / INDEX} is missing or damaged ({error}). Pack the set again.") from error
    paths = tuple(folder / _shard_name(number) for number in range(-(-len(ids) // per_shard)))
    for number, path in enumerate(paths):
        expected = min(per_shard, len(ids) - number * per_shard) * math.prod(picture)
        found = path.stat().st_size if path.is_file() else 0
        if found != expected:
            raise DataError(f"{path} has {found:,} bytes, expected {expected:,}. Pack the set again.")
    images = PackedImages(paths, per_shard, torch.arange(len(ids)), picture)
    return ImageSet(images, torch.tensor(labels), classes, ids)


def _checked(index: Any) -> tuple[tuple[int, int, int], tuple[str, ...], list[int], tuple[str, ...], int]:
    """Picture, classes, labels, ids and images per shard, after checking them."""
    picture, per_shard, classes, labels, ids = (
        index[name] for name in ("picture", "per_shard", "classes", "labels", "ids")
    )
    _expect(type(index["format"]) is int and index["format"] == FORMAT, f"its format is not {FORMAT}")
    sides = _is_list(picture, int) and len(picture) == 3 and picture[0] in (1, 3) and min(picture) > 0
    _expect(sides, "'picture' is not channels, height and width")
    _expect(_is_list(classes, str) and len(set(classes)) == len(classes) >= 2, "'classes' are not different names")
    _expect(_is_list(ids, str) and 0 < len(set(ids)) == len(ids), "'ids' are not different names")
    numbers = _is_list(labels, int) and len(labels) == len(ids) and -1 <= min(labels) <= max(labels) < len(classes)
    _expect(numbers, "'labels' are not a class number, or -1, for each image")
    _expect(type(per_shard) is int and 0 < per_shard < 2**40, "'per_shard' is not a number of images")
    return (picture[0], picture[1], picture[2]), tuple(classes), labels, tuple(ids), per_shard


def _is_list(value: Any, kind: type) -> bool:
    # True is a number in Python, but an error here.
    return isinstance(value, list) and all(type(one) is kind for one in value)


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)

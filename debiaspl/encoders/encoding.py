"""Features of images, each computed once.

An image is not opened if a row has its name, size and time. Otherwise it is read, and encoded unless a row has its
digest: then it was moved, copied or touched. New and changed images go into new files; rows of removed ones stay.

Part I of N computes the files k with k % N = I - 1. What is in a file depends neither on N nor on the number of cores,
so parts may be killed, repeated, and run anywhere and in any order.
"""

import hashlib
import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from debiaspl._processes import usable_cores
from debiaspl.data import DataError, ImageSet
from debiaspl.data.decode import BadImage, decode
from debiaspl.data.lazy import FolderFiles, LazyImages, Progress, unseen
from debiaspl.data.manifest import add_to_manifest, alone_in, encoders_in, read_manifest
from debiaspl.data.text import shown
from debiaspl.encoders.encoder import Encoder
from debiaspl.encoders.feature_folder import FeatureFolder, ImageRow
from debiaspl.kernels import bfloat16_works
from debiaspl.models import scale

SECONDS = 20.0
"""Features are written at least this often: the most work that a kill can lose."""
BATCH = {"cpu": 4, "cuda": 256}
"""Images per batch: on a CPU so few that activations fit in its cache."""
AHEAD = 64
"""Images that threads read ahead of the encoder."""
MAPPED = 2**30
"""In bytes: larger tables of features lie in a file without a name, of which the system keeps in memory what fits."""
Part = tuple[int, int]
"""Number of a part, from 0, and the number of parts."""


class ImageFeatures(NamedTuple):
    """Features of a set of images, in the order of the set."""

    values: Tensor
    """float32, (N, D). From 1 GiB on a memory map: read it in blocks, or rows of it, but make no copy of the whole."""
    skipped: dict[int, str]
    """Index -> why an image could not be read; its row is zeros."""


def features_of(images: ImageSet, encoder: Encoder, folder: Path | str, watch: Progress = unseen) -> ImageFeatures:
    """Features of every image; those that ``folder`` has for this encoder and image size are not computed again. Where
    ``watch``, which is called after every batch, raises to stop, what is done is kept."""
    encoding = Encoding(images, encoder, Path(folder), watch)
    encoding.values = _table(len(images), encoding.folder)
    encoding.run()
    return ImageFeatures(encoding.values, encoding.skipped)


class Encoding:
    values: Tensor | None = None
    """Where features are gathered, in the order of the images, if they are."""

    def __init__(
        self, images: ImageSet, encoder: Encoder, folder: Path, watch: Progress = unseen, half: bool = False
    ) -> None:
        names = images.ids
        if len(set(names)) != len(names):
            raise ValueError(f"{len(names):,} images have {len(set(names)):,} different names, expected one name each.")
        self.stored, self.encoder, self.watch = images.images, encoder, watch
        self.folder = FeatureFolder.of(folder, encoder, images.images.shape[1:], half)
        self.device = next(encoder.parameters()).device
        self.batch = BATCH.get(self.device.type, BATCH["cpu"])
        self.place = {name: position for position, name in enumerate(names)}
        files = getattr(images.images, "files", None)
        self.without_photos = isinstance(files, FolderFiles) and files.root == folder and bool(encoders_in(folder))
        self.stamps = [(-1, -1)] * len(names) if self.without_photos else _stamps(images)
        self.skipped: dict[int, str] = {}
        self.files = read_manifest(self.folder.path)
        self.left, self.total = set(range(len(names))), len(names)
        """Images without features, and how many images there are in all."""
        self.homes: dict[bytes, tuple[int, int]] = {}
        """Digest of an image -> file and row of its features."""
        self.read = lru_cache(1)(lambda number: self.folder.read(number, self.files[number]))

    def run(self, part: Part = (0, 1)) -> int:
        """Compute the files of this part that are not complete; returns how many images it has."""
        for number in self.plan(part):
            self.complete(number)
        return self.total

    def plan(self, part: Part = (0, 1)) -> list[int]:
        """Write the names of new images into the manifest; returns the files of this part that are not complete."""
        if self._new(part):
            with alone_in(self.folder.path):
                if new := self._new(part):
                    self.files = add_to_manifest(self.folder.path, self.files, new)
        self.folder.describe()
        own = range(part[0], len(self.files), part[1])
        mine = {self.place[name] for number in own for name in self.files[number] if name in self.place}
        self.left &= mine
        self.skipped = {position: why for position, why in self.skipped.items() if position in mine}
        self.total = len(mine)
        self.watch(self.total - len(self.left), self.total)
        return [number for number in own if any(self.place.get(name) in self.left for name in self.files[number])]

    def _new(self, part: Part) -> list[str]:
        """Take what is there; returns the names of the images that no file of the manifest has or will have."""
        self.files, self.left = read_manifest(self.folder.path), set(range(len(self.place)))
        planned: set[str] = set()
        others = [self.place.keys().isdisjoint(names) for names in self.files]
        for number in sorted(range(len(self.files)), key=others.__getitem__):
            if others[number] and (self.without_photos or not self.left):
                break
            names, gathered = self.files[number], self.values is not None and not others[number]
            rows = self.folder.read(number, names, gathered or number % part[1] == part[0])
            self._use(names, rows)
            # A photo that has changed since has its features in a later file.
            self.left |= {self.place[name] for name in names[len(rows) :] if name in self.place}
            planned.update(names[len(rows) :])
            good = (at for at, row in enumerate(rows) if row.stamp[0] >= 0 and not row.bad)
            self.homes |= {rows[at].digest: (number, at) for at in good}
        missing = [name for name, position in self.place.items() if position in self.left]
        if self.without_photos and missing:
            root, side = self.folder.path.parent, self.folder.about.side
            what = f"{root} lacks features by {self.encoder.name} at {side} pixels of {len(missing):,}"
            there = f"It has those by {shown(sorted({one.encoder for one in encoders_in(root).values()}))}"
            todo = "Run all parts of debiaspl encode, or name the photos too, or that encoder."
            raise DataError(f"{what} of {len(self.place):,} images: {shown(missing)}. {there}. {todo}")
        return [name for name in missing if name not in planned]

    def _use(self, names: Sequence[str], rows: Sequence[ImageRow]) -> None:
        """Take the rows of images that have not changed since."""
        for name, row in zip(names, rows, strict=False):
            position = self.place.get(name)
            if position is None or row.stamp[0] < 0:
                continue
            if self.without_photos or self.stamps[position] == row.stamp:
                self._take(position, row)

    def _take(self, position: int, row: ImageRow) -> None:
        self.left.discard(position)
        self.skipped.pop(position, None)
        if row.bad:
            self.skipped[position] = row.bad
        if self.values is not None:
            self.values[position] = 0.0 if row.features is None else row.features

    def complete(self, number: int) -> None:
        """Compute the rows of a file that are not there, and write it."""
        names = self.files[number]
        rows = self.folder.read(number, names)
        self._use(names, rows)
        if len(rows) == len(names):
            return
        since = time.monotonic()
        try:
            for batch in self._computed(names[len(rows) :]):
                for row in batch:
                    if row.features is None and row.digest in self.homes:
                        row.features = self._moved(row.digest)
                    if row.features is not None:
                        row.features = row.features.clone()  # frees all else that a network returns, or a file has
                    if (position := self.place.get(names[len(rows)])) is not None:
                        self._take(position, row)
                    rows.append(row)
                if time.monotonic() - since > SECONDS:
                    self._write(number, rows)
                    since = time.monotonic()
                self.watch(self.total - len(self.left), self.total)
        finally:
            self._write(number, rows)

    def _write(self, number: int, rows: Sequence[ImageRow]) -> None:
        # An image that cannot be opened may be readable the next time: such images alone are not kept. And another
        # process that computes the same file may be ahead.
        names = self.files[number]
        if any(row.stamp[0] >= 0 for row in rows) and len(self.folder.read(number, names)) <= len(rows):
            self.folder.write(number, names, rows)

    def _computed(self, names: Sequence[str]) -> Iterator[list[ImageRow]]:
        """Rows of the images of these names, in batches; threads read and compute ahead."""
        size, cpu = self.batch, self.device.type == "cpu"
        # The last bit of a feature depends on how many cores share a batch. Here each batch has one.
        compute = ThreadPoolExecutor(usable_cores() if cpu else 1, "encode", partial(torch.set_num_threads, 1))
        read = ThreadPoolExecutor(thread_name_prefix="decode")
        ahead: deque[Future[list[ImageRow]]] = deque()
        try:
            for start in range(0, len(names), size):
                batch = [read.submit(self._image, self.place.get(name)) for name in names[start : start + size]]
                ahead.append(compute.submit(self._encoded, batch))
                if len(ahead) > AHEAD // size + 1:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            # After an interrupt, running batches finish and no other one starts.
            compute.shutdown(wait=False, cancel_futures=True)
            read.shutdown(cancel_futures=True)
            compute.shutdown()

    def _image(self, position: int | None) -> tuple[ImageRow, Tensor | None]:
        """The row of an image without its features, and its pixels, (C, H, W), if it is to be encoded. There is no
        position where it was removed after its name was written into the manifest."""
        row, stored, pixels = ImageRow(), self.stored, None
        if position is None:
            return row, None
        try:
            if isinstance(stored, LazyImages):
                content = stored.files.read(int(stored.positions[position]))
                row.stamp, row.digest = self.stamps[position], hashlib.sha256(content).digest()
                pixels = None if row.digest in self.homes else decode(content, stored.size, stored.channels)
            else:
                pixels = stored[torch.tensor([position])][0].cpu()
                row.stamp, row.digest = self.stamps[position], _digest(pixels)
        except BadImage as error:
            row.bad = str(error)
        return row, None if row.digest in self.homes else pixels

    def _moved(self, digest: bytes) -> Tensor | None:
        """Features of an image that has another name, or another time, than those in the folder."""
        number, place = self.homes[digest]
        rows = self.read(number)
        if len(rows) <= place or rows[place].digest != digest:
            raise ValueError(f"{self.folder.path} was changed while it was read. Run the same command again.")
        return rows[place].features

    @torch.no_grad()
    def _encoded(self, batch: Sequence[Future[tuple[ImageRow, Tensor | None]]]) -> list[ImageRow]:
        read = [future.result() for future in batch]
        pixels = [each for _, each in read if each is not None]
        if pixels:
            # Batches of one size: the features of an image do not depend on the others that are encoded.
            filled = pixels + pixels[:1] * (self.batch - len(pixels))
            pictures = scale(torch.stack(filled).to(self.device)).contiguous(memory_format=torch.channels_last)
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=bfloat16_works(self.device)):
                features = self.encoder.embed(pictures)[: len(pixels)].float().cpu()
            if not bool(features.isfinite().all()):
                raise ValueError(f"the encoder {self.encoder.name} returns numbers that are not finite. Use another.")
            for row, values in zip((row for row, each in read if each is not None), features, strict=True):
                row.features = values
        return [row for row, _ in read]


def _table(size: int, folder: FeatureFolder) -> Tensor:
    """Memory for features; of a large table, a file that goes with the process."""
    size_in_bytes = 4 * size * folder.width
    if size_in_bytes < MAPPED:
        return torch.zeros((size, folder.width))
    folder.path.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder.path) as file:
        os.posix_fallocate(file.fileno(), 0, size_in_bytes)  # a full disk is an error here, and later a crash
        return torch.from_numpy(np.memmap(file, np.float32, "r+", shape=(size, folder.width)))


def _stamps(images: ImageSet) -> list[tuple[int, int]]:
    stored = images.images
    if isinstance(stored, LazyImages):
        return [stored.files.stamp(position) for position in stored.positions.tolist()]
    # Images in memory have no time: a part of the digest takes its place.
    parts = torch.split(torch.arange(len(images)), AHEAD)
    every = (pixels for positions in parts for pixels in stored[positions.to(stored.device)].cpu())
    return [(pixels.numel(), int.from_bytes(_digest(pixels)[:7], "big")) for pixels in every]


def _digest(pixels: Tensor) -> bytes:
    return hashlib.sha256(pixels.contiguous().numpy().data).digest()

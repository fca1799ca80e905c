"""Batches for training steps, from memory or from files, behind one interface."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from debiaspl.data.errors import DataError
from debiaspl.data.images import ImageSet, StoredImages
from debiaspl.data.lazy import LazyImages, Loaded
from debiaspl.data.stream import IndexStream


class Drawn(NamedTuple):
    """The images of one step."""

    positions: Tensor
    """Their places in the set."""
    pictures: tuple[Tensor, ...]
    """uint8, (N, C, H, W) each, on the device: one for every view asked for."""
    skipped: dict[int, str]
    """Place -> why a file could not be read, and another image stands in for it."""


class Feed(Protocol):
    """``feed[k]`` is what step k sees; it depends on the seed and k alone."""

    def __getitem__(self, number: int) -> Drawn: ...


def feed(images: ImageSet, batch: int, views: int, seed: int, device: torch.device, workers: int) -> Feed:
    """The feed that fits where the images are."""
    stream = IndexStream(len(images), batch, seed)
    if isinstance(images.images, LazyImages):
        return FileFeed(images.images, stream, views, device, workers)
    return MemoryFeed(images.images, stream, views, device)


def in_order(images: ImageSet, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """All images once, from first to last: positions and pictures; files that cannot be read are left out."""
    chunks = torch.split(torch.arange(len(images)), batch)
    stored = images.images
    if not isinstance(stored, LazyImages):
        for positions in chunks:
            yield positions, stored[positions.to(stored.device)]
        return
    with ThreadPoolExecutor() as pool:
        for positions in chunks:
            small = torch.split(positions, 32)
            loaded = list(pool.map(lambda part: stored.load(part, crops=1, seed=None), small))
            found = torch.cat([part.positions for part in loaded])
            pictures = torch.cat([part.pictures[0] for part in loaded])
            own = found == positions
            yield positions[own], pictures[own]


class MemoryFeed:
    """Images that lie in memory, on the device where they fit there: every view starts from the same pixels."""

    def __init__(self, images: Tensor | StoredImages, stream: IndexStream, views: int, device: torch.device) -> None:
        self.images, self.stream, self.views, self.device = images, stream, views, device

    def __getitem__(self, number: int) -> Drawn:
        positions = self.stream[number]
        # non_blocking: a plain copy would wait until the device has done all that was asked of it before.
        there = positions.to(self.device, non_blocking=True)
        here = there if self.images.device.type == self.device.type else positions
        picture = self.images[here].to(self.device, non_blocking=True)
        return Drawn(there, (picture,) * self.views, {})


class FileFeed:
    """Images that are read, decoded and cropped by worker processes, a few batches ahead of the step.

    Steps are asked for in order; a jump, as after a resume, starts the workers anew at the new place. What a batch
    holds does not depend on how many workers there are.
    """

    def __init__(self, images: LazyImages, stream: IndexStream, views: int, device: torch.device, workers: int) -> None:
        self.batches = _Batches(images, stream, views)
        self.device, self.workers = device, workers
        self._next, self._iterator = -1, iter(())  # type: tuple[int, Iterator[Loaded]]

    def __getitem__(self, number: int) -> Drawn:
        if number != self._next:
            self._next, self._iterator = number, iter(self._loader(number))
        try:
            positions, pictures, skipped = next(self._iterator)
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            raise DataError(
                f"a worker process that reads images has died ({error}). If the machine is short of memory, use fewer "
                "workers or smaller batches; then go on with --resume."
            ) from error
        self._next += 1
        moved = pictures.to(self.device, non_blocking=True)
        return Drawn(positions.to(self.device, non_blocking=True), tuple(moved), skipped)

    def _loader(self, start: int) -> DataLoader[Loaded]:
        return DataLoader(
            self.batches,
            batch_size=None,
            sampler=_From(start),
            num_workers=self.workers,
            pin_memory=self.device.type == "cuda",
            prefetch_factor=2 if self.workers else None,
            multiprocessing_context="spawn" if self.workers else None,
        )


class _Batches(Dataset[Loaded]):
    """Whole batches by number: a worker makes one by itself."""

    def __init__(self, images: LazyImages, stream: IndexStream, views: int) -> None:
        self.images, self.stream, self.views = images, stream, views

    def __getitem__(self, number: int) -> Loaded:
        torch.set_num_threads(1)
        # The stream's seed and the batch's number make the seed of the crops.
        return self.images.load(self.stream[number], self.views, (self.stream.seed << 32) + number)


class _From(Sampler[int]):
    """start, start + 1, ... for ever."""

    def __init__(self, start: int) -> None:
        self.start = start

    def __iter__(self) -> Iterator[int]:
        number = self.start
        while True:
            yield number
            number += 1

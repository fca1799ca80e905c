"""Batches for training steps, from memory or from files, behind one interface."""

import atexit
import math
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple, Protocol
from weakref import WeakSet

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from debiaspl._processes import end_with_parent, safe_start
from debiaspl.data.decode import BadImage
from debiaspl.data.errors import DataError
from debiaspl.data.images import ImageSet, StoredImages
from debiaspl.data.lazy import LazyImages
from debiaspl.data.stream import IndexStream
from debiaspl.data.vectors import Vectors
from debiaspl.debias import ranks

AHEAD = 2
"""Batches that each worker is ahead of the step."""

LookUp = Callable[[Tensor], tuple[Tensor, ...]]
_Summary = tuple[list[int], dict[int, str]]


class Drawn(NamedTuple):
    """The images of one step."""

    positions: Tensor
    """Their places in the set, on the CPU."""
    pictures: tuple[Tensor, ...]
    """uint8, (N, C, H, W) each, on the device: one for every view asked for. None where they are looked up."""
    skipped: dict[int, str]
    """Place -> why a file could not be read, and another image stands in for it."""


class Feed(Protocol):
    """``feed[k]`` is what step k sees; it depends on the seed and k alone.

    Where the images lie on the device, it is their positions alone: ``look_up(positions)``, with the positions on the
    device, are the pictures then, so that a step that was recorded once can be replayed for other positions. Elsewhere
    ``look_up`` is None.
    """

    @property
    def look_up(self) -> LookUp | None: ...

    def __getitem__(self, number: int) -> Drawn: ...


def feed(images: ImageSet, batch: int, views: int, seed: int, device: torch.device, workers: int) -> Feed:
    """The feed that fits where the images are. Where several ranks train together, the batch is that of all of them,
    and each is fed its part."""
    stream = IndexStream(len(images), batch, seed, ranks.own(), ranks.count())
    if isinstance(images.images, LazyImages):
        return FileFeed(images.images, stream, views, device, workers)
    return MemoryFeed(images.images, stream, views, device)


def in_order(
    images: ImageSet, batch: int, first: int = 0, every: int = 1, workers: int | None = None
) -> Iterator[Drawn]:
    """All images once, from first to last; files that cannot be read are left out, and named.

    For one of several that share them: of all batches, which stay what they are, number ``first`` and then each so many
    further on. Files are read by threads, a batch ahead of whoever looks at them, so that memory stays flat.
    """
    chunks = torch.split(torch.arange(len(images)), batch)[first::every]
    stored = images.images
    if not isinstance(stored, LazyImages):
        for positions in chunks:
            yield Drawn(positions, (stored[positions.to(stored.device)],), {})
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="decode")

    def begin(number: int) -> list[Future[Tensor]]:
        positions = chunks[number].tolist() if number < len(chunks) else []
        return [pool.submit(stored.picture, position) for position in positions]

    try:
        ahead = begin(0)
        for number, positions in enumerate(chunks):
            under_way, ahead = ahead, begin(number + 1)
            yield _collected(positions, under_way, stored)
    finally:
        # After an interrupt, the files under way end and no other one begins.
        pool.shutdown(cancel_futures=True)


def _collected(positions: Tensor, under_way: list[Future[Tensor]], stored: LazyImages) -> Drawn:
    pictures: dict[int, Tensor] = {}
    skipped: dict[int, str] = {}
    for position, future in zip(positions.tolist(), under_way, strict=True):
        try:
            pictures[position] = future.result()
        except BadImage as error:
            skipped[position] = str(error)
    made = torch.stack(list(pictures.values())) if pictures else torch.empty((0, *stored.shape[1:]), dtype=torch.uint8)
    return Drawn(torch.tensor(list(pictures), dtype=torch.int64), (made,), skipped)


def loaded(
    images: ImageSet,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    check: Callable[[dict[str, str]], None] = lambda bad: None,
) -> tuple[ImageSet, dict[str, str]]:
    """The same images in memory, but for those that cannot be read, which are named with the reason. ``check`` may
    refuse these before anything is made of the others."""
    if not isinstance(images.images, LazyImages):
        return images, {}
    room, kept, bad = _room(images.images.shape), list[int](), dict[str, str]()
    for drawn in in_order(images, 64, workers=workers):  # few enough that progress moves
        room[len(kept) : len(kept) + len(drawn.positions)] = drawn.pictures[0]
        kept += drawn.positions.tolist()
        bad |= {images.ids[place]: reason for place, reason in drawn.skipped.items()}
        progress(len(kept) + len(bad), len(images))
    check(bad)
    if not kept:
        raise DataError(f"none of {len(images):,} images can be read; the first: {next(iter(bad.values()))}.")
    return replace(images.select(kept), images=room[: len(kept)]), bad


def _room(shape: tuple[int, int, int, int]) -> Tensor:
    """One room for all of them: there is never a second copy of the whole."""
    try:
        return torch.empty(shape, dtype=torch.uint8)
    except RuntimeError as error:
        need = math.prod(shape) / 1e9
        raise DataError(
            f"{shape[0]:,} images of {shape[2]} x {shape[3]} need {need:,.1f} GB of memory, more than there is. "
            "Read them at a smaller size."
        ) from error


class MemoryFeed:
    """Images that lie in memory, on the device where they fit there: every view starts from the same pixels."""

    def __init__(
        self, images: Tensor | StoredImages | Vectors, stream: IndexStream, views: int, device: torch.device
    ) -> None:
        self.images, self.stream, self.views, self.device = images, stream, views, device

    @property
    def look_up(self) -> LookUp | None:
        return self._pictures if self.images.device.type == self.device.type else None

    def __getitem__(self, number: int) -> Drawn:
        positions = self.stream[number]
        if self.look_up is not None:
            return Drawn(positions, (), {})
        picture = self.images[positions].pin_memory().to(self.device, non_blocking=True)
        return Drawn(positions, (picture,) * self.views, {})

    def _pictures(self, positions: Tensor) -> tuple[Tensor, ...]:
        return (self.images[positions],) * self.views


class FileFeed:
    """Images that are read, decoded and cropped by worker processes, a few batches ahead of the step.

    Steps are asked for in order; a jump, as after a resume, starts the workers anew at the new place. What a batch
    holds does not depend on how many workers there are.

    Pictures travel in a few pieces of shared memory that are made once and used in turn: tensors that are sent one by
    one stay in a worker's memory for the next 128 of them, which is gigabytes for batches of photos.
    """

    look_up = None

    def __init__(self, images: LazyImages, stream: IndexStream, views: int, device: torch.device, workers: int) -> None:
        self.images, self.stream, self.views = images, stream, views
        self.device, self.workers = device, workers
        self._batches = _Batches(images, stream, views, [])
        self._next = -1
        self._iterator: Iterator[_Summary] = iter(())
        _with_workers.add(self)

    def end(self) -> None:
        """Let the workers go."""
        self._iterator, self._next = iter(()), -1

    def __getitem__(self, number: int) -> Drawn:
        if number != self._next:
            self.end()  # the old workers are gone before new ones start
            with safe_start():
                self._next, self._iterator = number, iter(self._loader(number))
        try:
            positions, skipped = next(self._iterator)
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            raise DataError(
                f"a worker process that reads images has died ({error}). If the machine is short of memory, use fewer "
                "workers or smaller batches; then go on with --resume."
            ) from error
        self._next += 1
        # Copied at once: the next batch but a few will be written to the same place. For a GPU the copy is to pinned
        # memory, from where the transfer needs nobody to wait for it.
        room = self._batches.room(number)
        pinned = self.device.type == "cuda"
        pictures = room.pin_memory().to(self.device, non_blocking=True) if pinned else room.clone()
        return Drawn(torch.tensor(positions), tuple(pictures), skipped)

    def _loader(self, start: int) -> DataLoader[_Summary]:
        shape = self.views, self.stream.rows, *self.images.shape[1:]
        # As many batches are under way as the workers are ahead, and one is being copied.
        rooms = [torch.empty(shape, dtype=torch.uint8) for _ in range(self.workers * AHEAD + 1)]
        for room in rooms:
            room.share_memory_()  # type: ignore[no-untyped-call]  # torch leaves it without types
        self._batches = _Batches(self.images, self.stream, self.views, rooms)
        return DataLoader(
            self._batches,
            batch_size=None,
            sampler=_From(start),
            collate_fn=_as_it_is,
            generator=torch.Generator(),  # else the loader draws from the user's own
            worker_init_fn=_follow_the_parent,
            num_workers=self.workers,
            prefetch_factor=AHEAD if self.workers else None,
            multiprocessing_context="spawn" if self.workers else None,
        )


_with_workers: WeakSet[FileFeed] = WeakSet()


@atexit.register
def _end_workers() -> None:
    """A feed that something still holds when Python ends, such as the last error, would have its workers terminated,
    which they ignore, and then waited for."""
    for one in list(_with_workers):
        one.end()


class _Batches(Dataset[_Summary]):
    """Whole batches by number: a worker makes one by itself, and leaves its pictures in the room of that number."""

    def __init__(self, images: LazyImages, stream: IndexStream, views: int, rooms: list[Tensor]) -> None:
        self.images, self.stream, self.views, self.rooms = images, stream, views, rooms

    def room(self, number: int) -> Tensor:
        return self.rooms[number % len(self.rooms)]

    def __getitem__(self, number: int) -> _Summary:
        # The stream's seed, the batch's number and the place in the whole batch make the seed of an image's crops.
        seed = (((self.stream.seed << 32) + number) << 32) + self.stream.first
        loaded = self.images.load(self.stream[number], self.views, seed, out=self.room(number))
        return loaded.positions.tolist(), loaded.skipped


def _follow_the_parent(worker: int) -> None:
    """Ctrl-C reaches every process of a terminal: the workers must live until the run has saved its state. They end
    when the parent lets them go, and when it is gone: torch sees that only if it happens after they have begun."""
    end_with_parent()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)


def _as_it_is(summary: Any) -> Any:
    """Nothing is to be made of what a worker says: DataLoader would turn its numbers into tensors."""
    return summary


class _From(Sampler[int]):
    """start, start + 1, ... for ever."""

    def __init__(self, start: int) -> None:
        self.start = start

    def __iter__(self) -> Iterator[int]:
        number = self.start
        while True:
            yield number
            number += 1

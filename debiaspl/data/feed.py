"""Batches for training steps, from memory or from files, with one interface."""

import atexit
import math
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakSet

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from debiaspl._processes import end_with_parent, safe_start
from debiaspl.data.decode import BadImage
from debiaspl.data.errors import DataError
from debiaspl.data.images import ImageSet, StoredImages
from debiaspl.data.lazy import LazyImages
from debiaspl.data.stream import BalancedStream, IndexStream
from debiaspl.debias import ranks

AHEAD = 2
"""Batches that each worker prepares ahead of the step."""

LookUp = Callable[[Tensor], tuple[Tensor, ...]]
_Summary = tuple[list[int], dict[int, str]]


class Drawn(NamedTuple):
    """The images of one step."""

    positions: Tensor
    """Their indices in the set, on the CPU."""
    pictures: tuple[Tensor, ...]
    """uint8, (N, C, H, W) each, on the device: one per view. Empty if they are looked up."""
    skipped: dict[int, str]
    """Index -> why a file could not be read; another image is used instead."""


def feed(
    images: ImageSet,
    batch: int,
    views: int,
    seed: int,
    device: torch.device,
    workers: int,
    classes: Tensor | None = None,
) -> "Feed":
    """A feed for images in memory or in files: ``feed[k]`` is the batch of step k; it depends only on the seed and k.
    With several ranks, ``batch`` is the joint batch, and each rank gets its part. With the ``classes`` of the images,
    every class is drawn equally often.

    If the images are on the device, a batch contains only their positions, and ``look_up(positions)``, with positions
    on the device, returns the pictures. So a recorded step can be replayed for other positions. Otherwise ``look_up``
    is None.
    """
    part = batch, seed, ranks.own(), ranks.count()
    stream = IndexStream(len(images), *part) if classes is None else BalancedStream(classes, *part)
    if isinstance(images.images, LazyImages):
        return FileFeed(images.images, stream, views, device, workers)
    return MemoryFeed(images.images, stream, views, device)


def in_order(
    images: ImageSet, batch: int, first: int = 0, every: int = 1, workers: int | None = None
) -> Iterator[Drawn]:
    """All images once, in order; files that cannot be read are left out and listed in ``skipped``.

    To share the work, pass ``first`` and ``every``: batch number ``first`` and every ``every``-th one after it; the
    batches themselves do not change. Threads read files one batch ahead, so that memory use stays constant.
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
        # After an interrupt, running reads finish and no other one starts.
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
    """The same images in memory, and a reason for each one that cannot be read. ``check`` gets these reasons and may
    raise before the images are put together."""
    if not isinstance(images.images, LazyImages):
        return images, {}
    buffer, kept, bad = _empty(images.images.shape), list[int](), dict[str, str]()
    for drawn in in_order(images, 64, workers=workers):  # few enough for frequent progress
        buffer[len(kept) : len(kept) + len(drawn.positions)] = drawn.pictures[0]
        kept += drawn.positions.tolist()
        bad |= {images.ids[place]: reason for place, reason in drawn.skipped.items()}
        progress(len(kept) + len(bad), len(images))
    check(bad)
    if not kept:
        raise DataError(f"none of {len(images):,} images can be read. The first: {next(iter(bad.values()))}.")
    return replace(images.select(kept), images=buffer[: len(kept)]), bad


def _empty(shape: tuple[int, int, int, int]) -> Tensor:
    """One tensor for all images, so that there is never a second copy."""
    try:
        return torch.empty(shape, dtype=torch.uint8)
    except RuntimeError as error:
        need = math.prod(shape) / 1e9
        raise DataError(
            f"{shape[0]:,} images of {shape[2]} x {shape[3]} need {need:,.1f} GB of memory, more than is free. "
            "Read them at a smaller size."
        ) from error


class MemoryFeed:
    """Images in memory, on the device if they fit there: every view starts from the same pixels."""

    def __init__(self, images: Tensor | StoredImages, stream: IndexStream, views: int, device: torch.device) -> None:
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
    """Images that worker processes read, decode and crop, a few batches ahead of the step.

    Steps must come in order; after a jump, as in a resume, the workers start again at the new step. The content of a
    batch does not depend on the number of workers.

    Images are passed in a few blocks of shared memory that are allocated once and reused. If tensors were sent one by
    one, a worker would keep the last 128 of them in memory, which is gigabytes for batches of photos.
    """

    look_up: LookUp | None = None

    def __init__(self, images: LazyImages, stream: IndexStream, views: int, device: torch.device, workers: int) -> None:
        self.images, self.stream, self.views = images, stream, views
        self.device, self.workers = device, workers
        self._batches = _Batches(images, stream, views, [])
        self._next = -1
        self._iterator: Iterator[_Summary] = iter(())
        _with_workers.add(self)

    def end(self) -> None:
        """Stop the workers."""
        self._iterator, self._next = iter(()), -1

    def __getitem__(self, number: int) -> Drawn:
        if number != self._next:
            self.end()  # the old workers must be gone before new ones start
            with safe_start():
                self._next, self._iterator = number, iter(self._loader(number))
        try:
            positions, skipped = next(self._iterator)
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            raise DataError(
                f"a worker process that reads images has died ({error}). If the machine is short of memory, use fewer "
                "workers or smaller batches. Then continue with --resume."
            ) from error
        self._next += 1
        # Copied at once, because a later batch will use the same memory. For a GPU it is copied to pinned memory, from
        # which the transfer is asynchronous.
        buffer = self._batches.buffer(number)
        pinned = self.device.type == "cuda"
        pictures = buffer.pin_memory().to(self.device, non_blocking=True) if pinned else buffer.clone()
        return Drawn(torch.tensor(positions), tuple(pictures), skipped)

    def _loader(self, start: int) -> DataLoader[_Summary]:
        shape = self.views, self.stream.rows, *self.images.shape[1:]
        # One for each batch that the workers are ahead, and one that is being copied.
        buffers = [torch.empty(shape, dtype=torch.uint8) for _ in range(self.workers * AHEAD + 1)]
        for buffer in buffers:
            buffer.share_memory_()  # type: ignore[no-untyped-call]  # torch leaves it without types
        self._batches = _Batches(self.images, self.stream, self.views, buffers)
        return DataLoader(
            self._batches,
            batch_size=None,
            sampler=count(start),
            collate_fn=_as_it_is,
            generator=torch.Generator(),  # otherwise the loader would draw from the user's generator
            worker_init_fn=_follow_the_parent,
            num_workers=self.workers,
            prefetch_factor=AHEAD if self.workers else None,
            multiprocessing_context="spawn" if self.workers else None,
        )


Feed = MemoryFeed | FileFeed
_with_workers: WeakSet[FileFeed] = WeakSet()


@atexit.register
def _end_workers() -> None:
    """At exit, stop the workers of feeds that are still referenced, for example by the last error. Otherwise they would
    be terminated, ignore that, and be waited for."""
    for one in list(_with_workers):
        one.end()


class _Batches(Dataset[_Summary]):
    """Whole batches by number: a worker makes a batch alone, and writes its images into the buffer of that number."""

    def __init__(self, images: LazyImages, stream: IndexStream, views: int, buffers: list[Tensor]) -> None:
        self.images, self.stream, self.views, self.buffers = images, stream, views, buffers

    def buffer(self, number: int) -> Tensor:
        return self.buffers[number % len(self.buffers)]

    def __getitem__(self, number: int) -> _Summary:
        # The stream's seed, the number of the batch and the place in the joint batch seed an image's crops.
        seed = (((self.stream.seed << 32) + number) << 32) + self.stream.first
        return self.images.load(self.stream[number], seed, self.buffer(number))


def _follow_the_parent(worker: int) -> None:
    """Ctrl-C reaches every process of a terminal, but the workers must live until the run has saved its state. They end
    when the parent stops them or is gone: torch only notices that if it happens after they have started."""
    end_with_parent()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)


def _as_it_is(summary: Any) -> Any:
    """Return a worker's result unchanged: DataLoader would convert its numbers into tensors."""
    return summary

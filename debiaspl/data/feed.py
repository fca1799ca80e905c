"""Which images each training step sees, from memory or from files, with one interface."""

import atexit
import math
import signal
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from weakref import WeakSet

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from debiaspl._processes import end_with_parent, safe_start
from debiaspl.data.decode import BadImage, channels_first, open_image, pillow_keeps_quiet
from debiaspl.data.images import ImageSet, StoredImages
from debiaspl.data.lazy import Drawn, LazyImages
from debiaspl.data.text import DataError
from debiaspl.debias import ranks

AHEAD = 2
"""Batches that each worker prepares ahead of the step."""

LookUp = Callable[[Tensor], tuple[Tensor, ...]]
_Summary = tuple[list[int], dict[int, str]]


class IndexStream:
    """Shuffled positions 0..size-1, epoch after epoch, without end.

    Batch k depends only on the seed and k, so a resumed run only needs to know k. Several ranks can each take one of
    ``parts`` equal parts of the same batch: together they see what a single process would.
    """

    def __init__(self, size: int, batch: int, seed: int, part: int = 0, parts: int = 1) -> None:
        self.size, self.batch, self.seed = size, batch, seed
        self.rows = batch // parts
        """Number of positions in a part."""
        self.first = part * self.rows
        """Place of the first of them in the whole batch."""
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64)

    def __getitem__(self, number: int) -> Tensor:
        """Positions of batch ``number``. A batch that reaches the end of an epoch continues with the next one."""
        start, parts, missing = number * self.batch + self.first, [], self.rows
        while missing:
            epoch, offset = divmod(start, self.size)
            part = self._shuffled(epoch)[offset : offset + missing]
            parts.append(part)
            start, missing = start + len(part), missing - len(part)
        return torch.cat(parts)

    def _shuffled(self, epoch: int) -> Tensor:
        if epoch != self._epoch:
            # Neighbouring seeds share no epoch within the first million of each.
            generator = torch.Generator().manual_seed((self.seed << 20) + epoch)
            self._epoch, self._order = epoch, torch.randperm(self.size, generator=generator)
        return self._order


class BalancedStream(IndexStream):
    """A stream with the same number of every class: one image of each in turn, each class shuffled by itself."""

    def __init__(self, classes: Tensor, batch: int, seed: int, part: int = 0, parts: int = 1) -> None:
        super().__init__(len(classes), batch, seed, part, parts)
        classes = classes.cpu()
        self._members = [(classes == one).nonzero().flatten() for one in torch.unique(classes)]
        # Classes have seeds of their own, which other streams do not have: those are small.
        seeds = [(((seed + 1) << 20) + number) % 2**43 for number in range(len(self._members))]
        self._streams = [IndexStream(len(own), 1, one) for own, one in zip(self._members, seeds, strict=True)]

    def __getitem__(self, number: int) -> Tensor:
        start = number * self.batch + self.first
        turns = (divmod(place, len(self._members)) for place in range(start, start + self.rows))
        return torch.cat([self._members[one][self._streams[one][turn]] for turn, one in turns])


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

    If the images are on the device, a batch contains only their positions, and ``look_up(positions)`` returns the
    pictures, so that a recorded step can be replayed for other positions. Otherwise ``look_up`` is None.
    """
    part = batch, seed, ranks.own(), ranks.count()
    stream = IndexStream(len(images), *part) if classes is None else BalancedStream(classes, *part)
    if isinstance(images.images, LazyImages):
        return FileFeed(images.images, stream, views, device, workers)
    return MemoryFeed(images.images, stream, views, device)


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
        self._batches = _Batches(images, stream, [])
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
            why = f"a worker process that reads images has died ({error})"
            raise DataError(f"{why}. Use fewer workers if memory is short, and continue with --resume.") from error
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
        self._batches = _Batches(self.images, self.stream, buffers)
        return DataLoader(
            self._batches,
            batch_size=None,
            sampler=count(start),
            collate_fn=tuple,  # unchanged: the usual one would convert its numbers into tensors
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

    def __init__(self, images: LazyImages, stream: IndexStream, buffers: list[Tensor]) -> None:
        self.images, self.stream, self.buffers = images, stream, buffers

    def buffer(self, number: int) -> Tensor:
        return self.buffers[number % len(self.buffers)]

    def __getitem__(self, number: int) -> _Summary:
        # The stream's seed, the number of the batch and the place in the joint batch seed an image's crops.
        seed = (((self.stream.seed << 32) + number) << 32) + self.stream.first
        return load_crops(self.images, self.stream[number], seed, self.buffer(number))


def _follow_the_parent(worker: int) -> None:
    """Ctrl-C reaches every process of a terminal, but the workers must live until the run has saved its state. They end
    when the parent stops them or is gone: torch only notices that if it happens after they have started."""
    end_with_parent()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)


def load_crops(images: LazyImages, positions: Tensor, seed: int, out: Tensor) -> _Summary:
    """Read these images, and write random resized crops of each into ``out``, uint8, (crops, N, C, H, W): the generator
    of the first is seeded with ``seed``, the others with the following numbers. A file that cannot be read is replaced
    by the next readable one. Returns the positions of the images that were used, and why others were not."""
    used: list[int] = []
    skipped: dict[int, str] = {}
    arrays, (height, width) = out.numpy(), images.size
    with pillow_keeps_quiet:  # once per batch, since it costs as much as a small image
        for place, position in enumerate(positions.tolist()):
            actual, image = _next_readable(images, position, skipped)
            used.append(actual)
            random = Random(seed + place)
            for picture in arrays[:, place]:
                box = resized_crop_box(image.width, image.height, random)
                crop = image.resize((width, height), Image.Resampling.BILINEAR, box=box)
                picture[...] = channels_first(crop)
    return used, skipped


def _next_readable(images: LazyImages, position: int, skipped: dict[int, str]) -> tuple[int, Image.Image]:
    for step in range(len(images.positions)):
        actual = (position + step) % len(images.positions)
        try:
            return actual, open_image(images.files.read(int(images.positions[actual])), None, images.channels)
        except BadImage as error:
            skipped[actual] = str(error)
    raise DataError(f"none of {len(images.positions)} images can be read. The first: {skipped[position]}.")


def resized_crop_box(width: int, height: int, random: Random) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a random part with 20 to 100 % of the area and an aspect ratio of 3:4 to 4:3: the
    weak view of the ImageNet recipes. Ten draws; if none fits, the largest centred part with an allowed ratio."""
    for _ in range(10):
        area = width * height * random.uniform(0.2, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = math.sqrt(area * ratio), math.sqrt(area / ratio)
        if w <= width and h <= height:
            left, top = random.uniform(0, width - w), random.uniform(0, height - h)
            return left, top, left + w, top + h
    w, h = min(width, height * 4 / 3), min(height, width * 4 / 3)
    return (width - w) / 2, (height - h) / 2, (width + w) / 2, (height + h) / 2

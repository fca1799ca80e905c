"""Images that stay in their files until they are needed; all of them in order, or in memory."""

import hashlib
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from debiaspl._printable import counted
from debiaspl.data.decode import BadImage, decode, open_image
from debiaspl.data.images import Files, ImageSet, StoredImages
from debiaspl.data.listing import Listing, Skipped
from debiaspl.data.text import DataError, shown
from debiaspl.files import memory

LARGE_FILE = 50_000_000
"""Size in bytes from which on the free memory is checked."""
PART = 1024
"""In bytes: how much of a file is read for a digest."""
MOST_SIZES, MOST_CONTENTS = 200_000, 10_000
"""Files of a set whose size, and whose content, is part of its digest."""
THREADS = 8
"""Images that are decoded at a time."""
Progress = Callable[[int, int], None]
"""Called with the number of images done and the total, in the calling thread."""
_log = logging.getLogger("debiaspl")


def unseen(done: int, total: int) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class FolderFiles:
    """The files of a folder."""

    root: Path
    names: tuple[str, ...]

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
                raise BadImage(f"the file needs {memory.lack_of(size)}")
            return path.read_bytes()
        except OSError as error:
            raise BadImage(f"cannot be opened: {error.strerror or error}") from error

    def part(self, position: int) -> bytes:
        try:
            with (self.root / self.names[position]).open("rb") as file:
                file.seek(max(self.stamp(position)[0], 0) // 2)
                return file.read(PART)
        except OSError:
            return b"?"


@dataclass(frozen=True, eq=False)
class LazyImages(StoredImages):
    """Indexed like the tensor of an ``ImageSet``, and read on demand."""

    files: Files
    positions: Tensor
    size: tuple[int, int]
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
            part = self.files.part(position) if place * sizes % contents < sizes else b""
            found.update(b"%d %b\0" % (self.files.stamp(position)[0], part))
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


class Drawn(NamedTuple):
    """The images of one step."""

    positions: Tensor
    """Their indices in the set, on the CPU."""
    pictures: tuple[Tensor, ...]
    """uint8, (N, C, H, W) each, on the device: one per view. Empty if they are looked up."""
    skipped: dict[int, str]
    """Index -> why a file could not be read; another image is used instead."""


def in_order(images: ImageSet, batch: int, first: int = 0, every: int = 1) -> Iterator[Drawn]:
    """All images once, in order; files that cannot be read are left out and listed in ``skipped``. Threads read one
    batch ahead. To share the work: batch number ``first`` and every ``every``-th one after it, which do not change."""
    chunks = torch.split(torch.arange(len(images)), batch)[first::every]
    stored = images.images
    if not isinstance(stored, LazyImages):
        for positions in chunks:
            yield Drawn(positions, (stored[positions.to(stored.device)],), {})
        return
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="decode")

    def look(position: int) -> Tensor | str:
        try:
            return stored.picture(position)
        except BadImage as error:
            return str(error)

    def begin(number: int) -> Iterator[Tensor | str]:
        return pool.map(look, chunks[number].tolist() if number < len(chunks) else ())

    try:
        ahead = begin(0)
        for number, positions in enumerate(chunks):
            under_way, ahead = ahead, begin(number + 1)
            seen = dict(zip(positions.tolist(), under_way, strict=True))
            read = {place: found for place, found in seen.items() if isinstance(found, Tensor)}
            skipped = {place: found for place, found in seen.items() if isinstance(found, str)}
            empty = torch.empty((0, *stored.shape[1:]), dtype=torch.uint8)
            made = torch.stack(list(read.values())) if read else empty
            yield Drawn(torch.tensor(list(read), dtype=torch.int64), (made,), skipped)
    finally:
        # After an interrupt, running reads finish and no other one starts.
        pool.shutdown(cancel_futures=True)


def loaded(images: ImageSet, progress: Progress = unseen) -> tuple[ImageSet, dict[str, str]]:
    """The same images in memory, and a reason for each one that cannot be read."""
    if not isinstance(images.images, LazyImages):
        return images, {}
    # One tensor for all images, so that there is never a second copy.
    buffer, count, bad = room_for(images.images.shape), 0, dict[int, str]()
    for drawn in in_order(images, 64):  # few enough for frequent progress
        buffer[count : count + len(drawn.positions)] = drawn.pictures[0]
        count += len(drawn.positions)
        bad |= drawn.skipped
        progress(count + len(bad), len(images))
    read, reasons = without_bad(images, bad)
    return replace(read, images=buffer[:count]), reasons


def without_bad(images: ImageSet, bad: Mapping[int, str]) -> tuple[ImageSet, dict[str, str]]:
    """The images without those at these positions, which cannot be read, and the reasons by name. Raises if no image is
    left, or no labeled one of a class."""
    reasons = {images.ids[position]: why for position, why in sorted(bad.items())}
    if len(bad) == len(images):
        raise DataError(f"none of {len(images):,} images can be read: {_shown_reasons(reasons.items())}.")
    read = images.select([position for position in range(len(images)) if position not in bad]) if bad else images
    counts = enumerate(zip(images.counts(), read.counts(), strict=True))
    if lost := [number for number, (before, after) in counts if before and not after]:
        names = shown([images.classes[number] for number in lost])
        theirs = [
            (images.ids[position], bad[position]) for position in sorted(bad) if int(images.labels[position]) in lost
        ]
        found = f"no labeled image of {names} can be read: {_shown_reasons(theirs)}"
        raise DataError(f"{found}. Every class needs one: replace some.")
    return read, reasons


def room_for(shape: tuple[int, ...]) -> Tensor:
    """A tensor of bytes for images, (N, C, H, W). Raises if it does not fit in memory."""
    if not memory.fits(need := math.prod(shape)):
        pixels = f"{shape[0]:,} images of {shape[3]} x {shape[2]} pixels"
        raise DataError(f"{pixels} need {memory.lack_of(need)}. Choose a smaller size, or stream them from a folder.")
    return torch.empty(shape, dtype=torch.uint8)


def left_in_files(listing: Listing, size: int | tuple[int, int] = 0) -> ImageSet:
    """The images of a folder, to be read when they are needed, at this size: (height, width), the side of a square, or
    0 for the size of the first readable image."""
    files = listing.stored or FolderFiles(listing.root, listing.files)
    shape = (size, size) if isinstance(size, int) else size
    lazy = LazyImages(files, torch.arange(len(listing.files)), shape)
    return ImageSet(lazy if size else lazy.with_size_of_first(), listing.labels, listing.classes, listing.files)


def read_listing(
    listing: Listing, size: int | tuple[int, int], progress: Progress = unseen
) -> tuple[ImageSet, Skipped]:
    """The images in memory, and what was skipped: (file, reason); docs/bad-files.md lists what happens with odd and
    damaged files. ``size`` as in ``left_in_files``."""
    images, bad = loaded(left_in_files(listing, size), progress)
    if skipped := tuple(sorted((*listing.skipped, *bad.items()))):
        told = listing.root, len(images), counted(len(skipped), "file"), _shown_reasons(skipped)
        _log.warning("%s: read %d images, skipped %s: %s", *told)
    return images, skipped


def images_of(listing: Listing, size: int, stream: bool, progress: Progress = unseen) -> ImageSet:
    """The images left in their files with ``stream`` and in tar shards, otherwise in memory."""
    if stream or listing.stored:
        return left_in_files(listing, size)
    return read_listing(listing, size, progress)[0]


def _shown_reasons(skipped: Iterable[tuple[str, str]]) -> str:
    return shown([f"{file} ({reason})" for file, reason in skipped])

"""Read a folder of images into an ImageSet, in memory or with images left in their files."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from debiaspl._processes import usable_cores
from debiaspl.data.errors import DataError, shown
from debiaspl.data.feed import loaded
from debiaspl.data.images import UNLABELED, ImageSet
from debiaspl.data.lazy import FolderFiles, LazyImages
from debiaspl.data.listing import Listing, Skipped, list_folder

_log = logging.getLogger("debiaspl")


def read_folder(
    root: Path | str, size: int | tuple[int, int], progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[ImageSet, Skipped]:
    """All images of a folder, and what was skipped: (file, reason); docs/bad-files.md lists what happens with odd and
    damaged files. ``size`` as in ``left_in_files``; ``progress(done, total)`` is called in the calling thread."""
    return read_listing(list_folder(root), size, progress=progress)


def read_listing(
    listing: Listing,
    size: int | tuple[int, int],
    channels: int = 3,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[ImageSet, Skipped]:
    """The same for a folder that is already listed; ``workers`` are threads."""
    lazy, threads = left_in_files(listing, size, channels), workers or min(8, usable_cores())
    images, bad = loaded(lazy, threads, progress, partial(_check_left, listing))
    skipped = tuple(sorted((*listing.skipped, *bad.items())))
    if skipped:
        named = shown([_with_reason(file, reason) for file, reason in skipped])
        word = "file" if len(skipped) == 1 else "files"
        _log.warning("%s: read %d images, skipped %d %s: %s", listing.root, len(images), len(skipped), word, named)
    return images, skipped


def left_in_files(listing: Listing, size: int | tuple[int, int] = 0, channels: int = 3) -> ImageSet:
    """The images of a folder, to be read when they are needed, at this size: (height, width), the side of a square, or
    0 for the size of the first readable image."""
    files = listing.stored or FolderFiles(listing.root, listing.files)
    shape = (size, size) if isinstance(size, int) else size
    lazy = LazyImages(files, torch.arange(len(files)), shape, channels)
    return ImageSet(lazy if size else lazy.with_size_of_first(), listing.labels, listing.classes, listing.files)


def _check_left(listing: Listing, bad: dict[str, str]) -> None:
    """Raise if no image is left, or none of a class that has labels."""
    labels = dict(zip(listing.files, listing.labels.tolist(), strict=True))
    lost = set(labels.values()) - {label for file, label in labels.items() if file not in bad}
    names = [listing.classes[label] for label in sorted(lost) if label != UNLABELED]
    if len(bad) == len(labels):
        found = f"none of the {len(labels)} images in {listing.root} can be read"
    elif names:
        found = f"no labeled image of {shown(names)} in {listing.root} can be read"
    else:
        return
    files = [_with_reason(file, bad[file]) for file in sorted(bad) if labels[file] in lost]
    raise DataError(f"{found}: {shown(files)}. Every class needs at least one image. Replace these files.")


def _with_reason(file: str, reason: str) -> str:
    return f"{file} ({reason})"

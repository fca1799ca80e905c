"""A folder of images -> an ImageSet, in memory or left in its files."""

import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.data.decode import BadImage, decode
from debiaspl.data.errors import DataError, shown
from debiaspl.data.images import UNLABELED, ImageSet
from debiaspl.data.label_table import USUAL, Columns
from debiaspl.data.lazy import FolderFiles, LazyImages
from debiaspl.data.listing import Listing, Skipped, list_folder

_log = logging.getLogger("debiaspl")
# Files per task: few enough that progress moves, many enough that a million files are not a million futures.
_CHUNK = 64


def read_folder(
    root: Path | str,
    size: tuple[int, int],
    labels: Path | str | None = None,
    classes: Sequence[str] | None = None,
    channels: int = 3,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    columns: Columns = USUAL,
) -> tuple[ImageSet, Skipped]:
    """Every image of a folder at ``size`` (height, width), and what was skipped: (file, reason).

    ``labels``, ``classes`` and ``columns`` as in ``list_folder``; what becomes of odd and damaged files stands in
    docs/bad-files.md. ``workers`` are threads; ``progress(done, total)`` is called from the calling thread.
    """
    listing = list_folder(root, labels, classes, columns=columns)
    images = _room(len(listing.files), channels, size)
    bad = _fill(images, listing, workers or min(8, os.cpu_count() or 1), progress)
    _check_left(listing, bad)
    kept = [position for position in range(len(listing.files)) if position not in bad]
    images = _close_gaps(images, kept, min(bad, default=len(kept)))
    skipped = (*listing.skipped, *((listing.files[position], reason) for position, reason in bad.items()))
    skipped = tuple(sorted(skipped))
    if skipped:
        named = shown([_with_reason(file, reason) for file, reason in skipped])
        word = "file" if len(skipped) == 1 else "files"
        _log.warning("%s: read %d images, skipped %d %s: %s", root, len(kept), len(skipped), word, named)
    files = tuple(listing.files[position] for position in kept)
    return ImageSet(images, listing.labels[kept], listing.classes, files), skipped


def left_in_files(listing: Listing, size: int = 0) -> ImageSet:
    """The images of a folder, read when they are drawn, as squares of this side; 0: the size of the first that can be
    read."""
    files = FolderFiles(listing.root, listing.files)
    lazy = LazyImages(files, torch.arange(len(files)), (size, size))
    return ImageSet(lazy if size else lazy.with_size_of_first(), listing.labels, listing.classes, listing.files)


def _room(count: int, channels: int, size: tuple[int, int]) -> Tensor:
    try:
        return torch.empty((count, channels, *size), dtype=torch.uint8)
    except RuntimeError as error:
        need = count * channels * size[0] * size[1] / 1e9
        raise DataError(
            f"{count:,} images of {size[0]} x {size[1]} need {need:,.1f} GB of memory, more than there is. "
            "Read them at a smaller size."
        ) from error


def _fill(images: Tensor, listing: Listing, workers: int, progress: Callable[[int, int], None]) -> dict[int, str]:
    """Decode every file into its place; position -> reason of those that give no image."""
    size, channels, total = (images.shape[2], images.shape[3]), images.shape[1], len(images)

    def fill(chunk: range) -> dict[int, str]:
        bad = {}
        for position in chunk:
            try:
                images[position] = decode(listing.root / listing.files[position], size, channels)
            except BadImage as error:
                bad[position] = str(error)
        return bad

    bad: dict[int, str] = {}
    chunks = [range(start, min(start + _CHUNK, total)) for start in range(0, total, _CHUNK)]
    pool = ThreadPoolExecutor(workers, thread_name_prefix="decode")
    try:
        for chunk, found in zip(chunks, pool.map(fill, chunks), strict=True):
            bad |= found
            progress(chunk.stop, total)
    finally:
        # After an interrupt, the chunks under way end and no other one begins.
        pool.shutdown(cancel_futures=True)
    return bad


def _check_left(listing: Listing, bad: dict[int, str]) -> None:
    """Raise if no image is left, or none of a class that has labels."""
    labels = listing.labels.tolist()
    lost = set(labels) - {label for position, label in enumerate(labels) if position not in bad}
    names = [listing.classes[label] for label in sorted(lost) if label != UNLABELED]
    if len(bad) == len(labels):
        found = f"none of the {len(labels)} images in {listing.root} can be read"
    elif names:
        found = f"no labeled image in {listing.root} can be read of {shown(names)}"
    else:
        return
    files = [
        _with_reason(listing.files[position], bad[position]) for position in sorted(bad) if labels[position] in lost
    ]
    raise DataError(f"{found}: {shown(files)}. Every class needs an image; replace these files.")


def _with_reason(file: str, reason: str) -> str:
    return f"{file} ({reason})"


def _close_gaps(images: Tensor, kept: Sequence[int], first_gap: int) -> Tensor:
    """Move the images that were read to the front, in place: there is never a second copy of the whole."""
    for place in range(first_gap, len(kept)):
        images[place] = images[kept[place]]
    return images[: len(kept)]

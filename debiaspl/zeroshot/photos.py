"""A folder of unlabeled photos; the names of its subfolders have no meaning here."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError, ImageSet, LazyImages
from debiaspl.data.errors import shown
from debiaspl.data.folder import left_in_files
from debiaspl.data.listing import list_folder, list_images
from debiaspl.data.table_form import USUAL, Columns

SMALL = 128
"""Side to which an encoder of any size enlarges small photos at most: four times as fast, for a small loss."""


def open_photos(root: Path, classes: Sequence[str]) -> ImageSet:
    """Every image below ``root``, left in its file, without labels."""
    return left_in_files(replace(list_images(root), classes=tuple(classes)))


def sized(images: ImageSet, size: int) -> ImageSet:
    """Read images from files at this size; those in memory do not change."""
    if not isinstance(images.images, LazyImages):
        return images
    return replace(images, images=replace(images.images, size=(size, size), channels=3))


def lite0_size(side: int) -> int:
    """Side of the images inside efficientnet-lite0 for photos of this side."""
    return SMALL if side <= SMALL else 224


@dataclass(frozen=True)
class Truth:
    """True labels from ``--evaluate``, only for the final table."""

    root: Path
    table: Path
    labels: dict[str, int]
    """File -> class number, for the files that the table names and the folder contains."""
    absent: tuple[str, ...]
    """Files that the table names but the folder does not contain."""

    def left_out(self) -> list[str]:
        """Message about files that are not in the folder: a larger table is fine, but a wrong path must be noticed."""
        if not self.absent:
            return []
        are, there = "is" if len(self.absent) == 1 else "are", "is" if len(self.labels) == 1 else "are"
        found = f"{len(self.absent):,} of the files that {self.table} names {are} not in {self.root}"
        counted = f"The numbers are those of the {len(self.labels):,} with a label that {there}."
        return [f"{found}: {shown(self.absent)}. {counted}"]

    def unread(self, bad: Container[str]) -> list[str]:
        """Message about files that cannot be read. Raises if none is left."""
        names, total = [name for name in self.labels if name in bad], len(self.labels)
        if len(names) == total:
            raise DataError(f"none of the {total:,} images that {self.table} names can be read: {shown(names)}.")
        found = f"{len(names):,} of {total:,} images that {self.table} names cannot be read"
        return [f"{found}: {shown(names)}."] if names else []


def read_truth(root: Path, table: Path, classes: Sequence[str], columns: Columns = USUAL) -> Truth:
    """True labels for some of the images; the table may also name others, of a larger folder."""
    return Truth(root, table, *_given(root, table, classes, columns, "--evaluate", allow_absent=True))


def read_labels(root: Path, table: Path, classes: Sequence[str], columns: Columns = USUAL) -> dict[str, int]:
    """``--labels``: file -> class number, labels from a person for training."""
    return _given(root, table, classes, columns, "--labels")[0]


def _given(
    root: Path, table: Path, classes: Sequence[str], columns: Columns, option: str, allow_absent: bool = False
) -> tuple[dict[str, int], tuple[str, ...]]:
    if not table.is_file():
        raise DataError(f"{option} is {table}, which is not a file. Expected a CSV with the columns file_name,label.")
    listing = list_folder(root, table, classes, allow_absent, columns)
    given = dict(zip(listing.files, listing.labels.tolist(), strict=True))
    found = {file: label for file, label in given.items() if label != UNLABELED}
    if not found and listing.absent:
        raise DataError(
            f"{table} labels no image that is in {root}. It names these missing files: {shown(listing.absent)}. "
            f"Paths are relative to {root} and written with /."
        )
    if not found:
        raise DataError(f"{table} has no label for any image. Expected rows such as: {listing.files[0]},{classes[0]}")
    return found, listing.absent


def as_tensor(given: dict[str, int], ids: Sequence[str]) -> Tensor:
    """A label for each image, -1 for none."""
    return torch.tensor([given.get(name, UNLABELED) for name in ids], dtype=torch.int64)

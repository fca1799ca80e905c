"""A folder of unlabeled photos, whose subfolders have no meaning here, and tables of labels for some of them."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError, ImageSet, LazyImages
from debiaspl.data.label_table import USUAL, Columns
from debiaspl.data.lazy import left_in_files
from debiaspl.data.listing import list_folder, list_images
from debiaspl.data.text import shown

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
class GivenTable:
    """A table of labels for some of the photos: a few to learn from, or true ones for the final table."""

    root: Path
    table: Path
    labels: dict[str, int]
    """File -> class number, for the files that the table names and the folder contains."""
    absent: tuple[str, ...]
    """Files that the table names but the folder does not contain."""

    @classmethod
    def read(
        cls, root: Path, table: Path, classes: Sequence[str], columns: Columns = USUAL, whole: bool = True
    ) -> "GivenTable":
        """Read it; unless ``whole``, it may name other files too, of a larger folder."""
        if not table.is_file():
            raise DataError(f"{table} is not a file. Expected a CSV with the columns file_name,label.")
        listing = list_folder(root, table, classes, not whole, columns)
        given = dict(zip(listing.files, listing.labels.tolist(), strict=True))
        labels = {file: label for file, label in given.items() if label != UNLABELED}
        if not labels and listing.absent:
            raise DataError(f"{table} labels no image in {root}, but these, which are not: {shown(listing.absent)}.")
        if not labels:
            raise DataError(f"{table} has no label. Expected rows such as: {listing.files[0]},{classes[0]}")
        return cls(root, table, labels, listing.absent)

    def of(self, ids: Sequence[str]) -> Tensor:
        """A label for each image, -1 for none."""
        return torch.tensor([self.labels.get(name, UNLABELED) for name in ids], dtype=torch.int64)

    def notes(self, bad: Container[str] = ()) -> list[str]:
        """What to know about files that are not in the folder, as a wrong path must be noticed, and about those that
        cannot be read, ``bad``. Raises if none is left."""
        names, total, lines = [name for name in self.labels if name in bad], len(self.labels), []
        if len(names) == total:
            raise DataError(f"none of the {total:,} images that {self.table} names can be read: {shown(names)}.")
        if self.absent:
            absent = f"{len(self.absent):,} of the files that {self.table} names not in {self.root}"
            lines.append(f"{absent}: {shown(self.absent)}. Measured on the other {total:,} with a label.")
        if names:
            lines.append(f"{len(names):,} of {total:,} images that {self.table} names cannot be read: {shown(names)}.")
        return lines

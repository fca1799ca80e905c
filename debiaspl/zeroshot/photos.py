"""A folder of photos that nobody has labeled; the names of its inner folders mean nothing here."""

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


def open_photos(root: Path, classes: Sequence[str]) -> ImageSet:
    """Every image below ``root``, left in its file, without a label and without a truth."""
    return left_in_files(replace(list_images(root), classes=tuple(classes)))


def sized(images: ImageSet, size: int) -> ImageSet:
    """Images in files are read at this size; those in memory are what they are."""
    if not isinstance(images.images, LazyImages):
        return images
    return replace(images, images=replace(images.images, size=(size, size), channels=3))


@dataclass(frozen=True)
class Truth:
    """``--evaluate``. Reaches the final table alone."""

    root: Path
    table: Path
    labels: dict[str, int]
    """File -> class number, for the files that the table names and the folder has."""
    absent: tuple[str, ...]
    """Files that the table names and the folder does not have."""

    def left_out(self) -> list[str]:
        """For the user: a table of a larger set will do, but a slip in its paths must not stay unseen."""
        if not self.absent:
            return []
        are, there = "is" if len(self.absent) == 1 else "are", "is" if len(self.labels) == 1 else "are"
        found = f"{len(self.absent):,} of the files that {self.table} names {are} not in {self.root}"
        counted = f"The numbers are those of the {len(self.labels):,} with a label that {there}."
        return [f"{found}: {shown(self.absent)}. {counted}"]

    def unread(self, bad: Container[str]) -> list[str]:
        """The same of those that cannot be read. Raises where that leaves none."""
        names, total = [name for name in self.labels if name in bad], len(self.labels)
        if len(names) == total:
            raise DataError(f"none of the {total:,} images that {self.table} names can be read: {shown(names)}.")
        found = f"{len(names):,} of {total:,} images that {self.table} names cannot be read"
        return [f"{found}: {shown(names)}."] if names else []


def read_truth(root: Path, table: Path, classes: Sequence[str], columns: Columns = USUAL) -> Truth:
    """Labels for some of the images; the table may name others too, of a larger folder."""
    return Truth(root, table, *_given(root, table, classes, columns, "--evaluate", allow_absent=True))


def read_labels(root: Path, table: Path, classes: Sequence[str], columns: Columns = USUAL) -> dict[str, int]:
    """``--labels``: file -> class number, of labels that a person gave to learn from."""
    return _given(root, table, classes, columns, "--labels")[0]


def _given(
    root: Path, table: Path, classes: Sequence[str], columns: Columns, option: str, allow_absent: bool = False
) -> tuple[dict[str, int], tuple[str, ...]]:
    if not table.is_file():
        raise DataError(f"{option} is {table}, which is no file. Expected a CSV with the columns file_name,label.")
    listing = list_folder(root, table, classes, allow_absent, columns)
    given = dict(zip(listing.files, listing.labels.tolist(), strict=True))
    found = {file: label for file, label in given.items() if label != UNLABELED}
    if not found and listing.absent:
        raise DataError(
            f"{table} labels no image that is in {root}; what it names and is not there: {shown(listing.absent)}. "
            f"Paths are relative to {root} and written with /."
        )
    if not found:
        raise DataError(f"{table} gives no image a label. Expected rows such as: {listing.files[0]},{classes[0]}")
    return found, listing.absent


def as_tensor(given: dict[str, int], ids: Sequence[str]) -> Tensor:
    """A label for each image, -1 where there is none."""
    return torch.tensor([given.get(name, UNLABELED) for name in ids], dtype=torch.int64)

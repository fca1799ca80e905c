"""What a folder of photos holds: images, labels, classes and sizes."""

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError
from debiaspl.data.decode import BadImage, open_image
from debiaspl.data.label_table import USUAL, Columns
from debiaspl.data.listing import Listing, list_folder, list_images
from debiaspl.data.manifest import stored_for
from debiaspl.data.text import shown

FEWEST_IMAGES = 10
LOOKED_AT = 32
"""How many photos are opened to see their size."""


@dataclass(frozen=True, eq=False)
class Photos:
    """What a folder holds."""

    folder: Path
    table: Path | None
    labels: Tensor
    """int64, (N,); -1 for none."""
    classes: tuple[str, ...]
    side: int
    """The median shorter side of the photos, in pixels."""
    columns: Columns = USUAL
    """The names of the table's columns."""
    folders: bool = False
    """Whether class folders are labels too, for photos without a label in the table."""
    passed_over: tuple[str, ...] = ()
    """Photos in a folder named like a class, without a label in the table."""
    features: Path | None = None
    """Where their features are kept; by default beside the run."""

    @property
    def protocol(self) -> dict[str, str | bool]:
        """Settings of ``GivenLabels`` that find these labels again."""
        given = {"table": self.table, "file_column": self.columns.file, "label_column": self.columns.label}
        found: dict[str, str | bool] = {name: str(value) for name, value in given.items() if value}
        return found | {"folders": True} if self.folders else found

    @property
    def counts(self) -> list[int]:
        return torch.bincount(self.labels[self.labels >= 0], minlength=len(self.classes)).tolist()

    @property
    def unlabeled(self) -> int:
        return int((self.labels == UNLABELED).sum())

    def headline(self) -> str:
        """Images, labels and classes, in a line."""
        if not self.classes:
            return f"{len(self.labels):,} images without labels."
        counts = self.counts
        rarest = min(range(len(counts)), key=counts.__getitem__)
        even = len(set(counts)) == 1
        spread = f"{counts[0]:,} of each" if even else f"rarest: {self.classes[rarest]} ({counts[rarest]})"
        return f"{len(self.labels):,} images, {sum(counts):,} labels, {len(counts)} classes; {spread}."

    def each_class(self) -> str:
        """The classes with their labels, in a line, so that the user notices a wrong one."""
        named = [repr(name) if "," in name else name for name in self.classes]
        told = [f"{name} {count:,}" for name, count in zip(named, self.counts, strict=True)]
        return f"Classes: {shown(told, limit=30)}."

    @property
    def source(self) -> Path:
        """Where the labels come from: a table, or the folder with a folder for each class."""
        beside = self.folder / "labels.csv"
        return self.table or (beside if beside.is_file() else self.folder)

    @property
    def in_folders(self) -> bool:
        return self.source == self.folder


def survey(
    folder: Path,
    table: Path | None,
    columns: Columns = USUAL,
    folders: bool = False,
    features: Path | None = None,
) -> Photos:
    """List a folder, or the names in a folder of features. Only a few photos are opened, for their size. ``folders`` as
    in ``list_folder``; ``features`` is where features are kept."""
    found = _surveyed(list_folder(folder, table, columns=columns, folders=folders), table, columns, folders)
    stored = stored_for(features)
    return replace(found, features=features, side=stored.side if stored else found.side)


def survey_for_start(folder: Path, table: Path | None, columns: Columns = USUAL, no_labels: bool = False) -> Photos:
    """The same for features that are learned without labels: none are needed, and those that are there are kept.

    Labels come from a table, or from folders where all of the images lie in class folders; two or more classes, or else
    there are none. ``no_labels`` looks at neither.
    """
    if no_labels:
        return _surveyed(list_images(folder), None)
    if table is not None or columns != USUAL or (folder / "labels.csv").is_file():
        return _surveyed(list_folder(folder, table, columns=columns, needs_classes=False), table, columns)
    try:
        return _surveyed(list_folder(folder), None)
    except DataError:  # not a folder for each class; is it one of images?
        return _surveyed(list_images(folder), None)


def _surveyed(listing: Listing, table: Path | None, columns: Columns = USUAL, folders: bool = False) -> Photos:
    folder = listing.root
    if len(listing.files) < FEWEST_IMAGES:
        raise DataError(
            f"{folder} holds {len(listing.files)} images, expected {FEWEST_IMAGES} or more. Add photos without a label "
            "too: most of what is learned comes from them."
        )
    side, passed_over = median_side(listing), listing.passed_over
    return Photos(folder, table, listing.labels, listing.classes, side, columns, folders, passed_over)


def median_side(listing: Listing) -> int:
    """The median shorter side of some of these photos, in pixels."""
    if features := stored_for(listing.root):
        return features.side
    some = range(0, len(listing.files), max(len(listing.files) // LOOKED_AT, 1))
    stored, names = listing.stored, listing.files
    sides = [side for n in some if (side := _side(stored.read(n) if stored else listing.root / names[n]))]
    if not sides:
        raise DataError(f"none of {len(some)} images of {listing.root} that were tried can be read.")
    return int(median(sides))


def _side(image: Path | bytes) -> int | None:
    try:
        return min(open_image(image, None).size)
    except BadImage:
        return None

"""What lies in a folder of somebody's own photos."""

from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError
from debiaspl.data.class_names import UNLABELED_NAME
from debiaspl.data.decode import BadImage, open_image
from debiaspl.data.label_table import USUAL, Columns
from debiaspl.data.listing import Listing, list_folder, list_images

FEWEST_IMAGES = 10
LOOKED_AT = 32
"""Photos that are opened to see how large they are."""
NAMED = 5
"""Groups of classes that a message names."""


@dataclass(frozen=True, eq=False)
class Photos:
    """What lies in a folder."""

    folder: Path
    table: Path | None
    labels: Tensor
    """int64, (N,); -1 for none."""
    classes: tuple[str, ...]
    side: int
    """The shorter side of a usual photo, in pixels."""
    columns: Columns = USUAL
    """What the table calls its columns."""

    @property
    def protocol(self) -> dict[str, str]:
        """Settings of ``GivenLabels`` that find these labels again."""
        given = {"table": self.table, "file_column": self.columns.file, "label_column": self.columns.label}
        return {name: str(value) for name, value in given.items() if value}

    @property
    def counts(self) -> list[int]:
        return torch.bincount(self.labels[self.labels >= 0], minlength=len(self.classes)).tolist()

    @property
    def unlabeled(self) -> int:
        return int((self.labels == UNLABELED).sum())

    def headline(self) -> str:
        """What is there, in a line."""
        if not self.classes:
            return f"{len(self.labels):,} images without labels."
        counts = self.counts
        rarest = min(range(len(counts)), key=counts.__getitem__)
        even = len(set(counts)) == 1
        spread = f"{counts[0]:,} of each" if even else f"rarest: {self.classes[rarest]} ({counts[rarest]})"
        return f"{len(self.labels):,} images, {sum(counts):,} labels, {len(counts)} classes; {spread}."

    @property
    def source(self) -> Path:
        """Where the labels come from: a table, or the folder with a folder for each class."""
        beside = self.folder / "labels.csv"
        return self.table or (beside if beside.is_file() else self.folder)

    @property
    def in_folders(self) -> bool:
        return self.source == self.folder


def survey(folder: Path, table: Path | None, columns: Columns = USUAL) -> Photos:
    """Look at a folder; no photo is read but a few, for their size."""
    return _surveyed(list_folder(folder, table, columns=columns), table, columns)


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


def _surveyed(listing: Listing, table: Path | None, columns: Columns = USUAL) -> Photos:
    folder = listing.root
    if len(listing.files) < FEWEST_IMAGES:
        raise DataError(
            f"{folder} holds {len(listing.files)} images, expected {FEWEST_IMAGES} or more. Put the photos that have "
            "no label there too: most of what is learned comes from them."
        )
    step = max(len(listing.files) // LOOKED_AT, 1)
    sides = [side for name in listing.files[::step] if (side := _side(folder / name))]
    if not sides:
        raise DataError(f"none of {len(listing.files[::step])} images of {folder} that were looked at can be read.")
    return Photos(folder, table, listing.labels, listing.classes, int(median(sides)), columns)


def _side(path: Path) -> int | None:
    try:
        return min(open_image(path, None).size)
    except BadImage:
        return None


def refuse_alike(photos: Photos) -> None:
    """Raise where names of classes differ in capital letters and spaces alone: nearly always one class and a slip."""
    groups = alike(photos.classes)
    if not groups:
        return
    counts = dict(zip(photos.classes, photos.counts, strict=True))
    told = "; ".join(" and ".join(_told(name, counts) for name in group) for group in groups[:NAMED])
    more = f"; and {len(groups) - NAMED} more" if len(groups) > NAMED else ""
    todo = ", ".join(_todo(group, counts, photos.in_folders) for group in groups[:NAMED])
    how = "move photos from one folder to the other and remove the empty one" if photos.in_folders else "write"
    raise DataError(
        f"{photos.source} has names that differ in capital letters or spaces alone: {told}{more}. Each would be "
        f"learned as a class of its own. If they are one, {how}: {todo}. If they are not, allow it: --allow-alike."
    )


def alike(classes: tuple[str, ...]) -> list[list[str]]:
    """Names that are one, but for their case and spaces; among them the one that means: no label."""
    groups: dict[str, list[str]] = {}
    for name in (UNLABELED_NAME, *classes):
        groups.setdefault(" ".join(name.casefold().split()), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _told(name: str, counts: dict[str, int]) -> str:
    if name == UNLABELED_NAME:
        return f"{name!r} (which means: no label)"
    return f"{name!r} ({counts[name]:,} photo{'' if counts[name] == 1 else 's'})"


def _todo(group: list[str], counts: dict[str, int], in_folders: bool) -> str:
    """The spelling to keep: the one that means no label, or else one without odd spaces that most photos have."""
    tidy = {name: " ".join(name.split()) == name for name in group}
    right = max(group, key=lambda name: (name == UNLABELED_NAME, tidy[name], counts.get(name, 0)))
    wrong = " and ".join(repr(name) for name in group if name != right)
    return f"{wrong} to {right!r}" if in_folders else f"{right!r} instead of {wrong}"

"""What a folder of photos holds: images, labels, classes and sizes. Class names that are nearly always a mistake are
refused before training, unless the user allows them."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from debiaspl._printable import counted
from debiaspl.data import UNLABELED, DataError
from debiaspl.data.decode import BadImage, open_image
from debiaspl.data.label_table import USUAL, Columns
from debiaspl.data.listing import TABLE, Listing, list_folder, list_images
from debiaspl.data.manifest import stored_for
from debiaspl.data.text import UNLABELED_NAME, means_no_value, shown

FEWEST_IMAGES = 10
LOOKED_AT = 32
"""How many photos are opened to see their size."""
NAMED = 5
NOT_YET = frozenset(
    ("rest", "remaining", "todo", "tolabel", "tobelabeled", "tobelabelled", "unsorted", "unclassified", "uncategorized")
)
"""Names, in lower case and without signs, that usually mean "not labeled yet"."""
_BETWEEN = re.compile(r"\s*[,;|/+&]\s*|\s+and\s+")


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
    folders: bool = False
    """Whether class folders are labels too, for photos without a label in the table."""
    features: Path | None = None
    """Where their features are kept; by default beside the run."""
    names: tuple[str, ...] = ()
    """Their files."""

    @property
    def protocol(self) -> dict[str, str | bool]:
        """Settings of ``GivenLabels`` that find these labels again."""
        table = "" if self.table is None else str(self.table)
        names = {"file_column": self.columns.file, "label_column": self.columns.label}
        return {name: value for name, value in {"table": table, **names, "folders": self.folders}.items() if value}

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
        counts, least = self.counts, min(self.counts)
        even, rarest = max(counts) == least, self.classes[counts.index(least)]
        spread = f"{least:,} of each" if even else f"rarest: {rarest} ({least})"
        return f"{len(self.labels):,} images, {sum(counts):,} labels, {len(counts)} classes; {spread}."

    def each_class(self) -> str:
        """The classes with their labels, in a line, so that the user notices a wrong one."""
        pairs = zip(self.classes, self.counts, strict=True)
        named = [f"{repr(name) if ',' in name else name} {count:,}" for name, count in pairs]
        return f"Classes: {shown(named, limit=30)}."


def survey(
    folder: Path,
    table: Path | None,
    columns: Columns = USUAL,
    folders: str | None = None,
    features: Path | None = None,
    allow_names: bool = False,
) -> Photos:
    """List a folder, or the names in a folder of features, and refuse doubtful class names unless they are allowed.
    Only a few photos are opened, for their size. ``folders`` says whether class folders beside a table are labels:
    ``use`` or ``ignore``; ``features`` is where features are kept."""
    if folders not in (None, "use", "ignore"):
        raise ValueError(f"folders is {folders!r}, expected use or ignore.")
    use = folders == "use"
    listing = list_folder(folder, table, columns=columns, folders=use)
    if listing.passed_over and folders != "ignore":
        named = shown(sorted({file.split("/")[0] for file in listing.passed_over}))
        found = f"{counted(len(listing.passed_over), 'photo')} in folders named like its classes: {named}"
        todo = "If these folders are labels too: --folders use, else --folders ignore (in Python folders=...)"
        raise DataError(f"{table or folder / TABLE} gives no label to {found}. {todo}.")
    photos = _surveyed(listing, table, columns, use, features)
    if not allow_names:
        _refuse_doubtful(photos)
    return photos


def survey_for_start(folder: Path, table: Path | None, columns: Columns = USUAL, no_labels: bool = False) -> Photos:
    """The same for features that are learned without labels: none are needed, and two or more classes are kept, from a
    table, or from folders where all images lie in class folders. ``no_labels`` looks at neither."""
    if no_labels:
        return _surveyed(list_images(folder))
    if table is not None or columns != USUAL or (folder / TABLE).is_file():
        return _surveyed(list_folder(folder, table, columns=columns, needs_classes=False), table, columns)
    try:
        return _surveyed(list_folder(folder))
    except DataError:  # not a folder for each class; is it one of images?
        return _surveyed(list_images(folder))


def _surveyed(
    listing: Listing,
    table: Path | None = None,
    columns: Columns = USUAL,
    folders: bool = False,
    features: Path | None = None,
) -> Photos:
    if len(listing.files) < FEWEST_IMAGES:
        found = f"{listing.root} holds {len(listing.files)} images, expected {FEWEST_IMAGES} or more"
        raise DataError(f"{found}. Add photos without a label too: most of what is learned comes from them.")
    side = median_side(listing, features)
    return Photos(listing.root, table, listing.labels, listing.classes, side, columns, folders, features, listing.files)


def median_side(listing: Listing, features: Path | None) -> int:
    """The median shorter side of some of these photos, in pixels, or of those that the features were computed of."""
    if stored := stored_for(features or listing.root, listing.files):
        return stored.side
    some = range(0, len(listing.files), max(len(listing.files) // LOOKED_AT, 1))
    files, names = listing.stored, listing.files
    sides = [side for n in some if (side := _side(files.read(n) if files else listing.root / names[n]))]
    if not sides:
        raise DataError(f"none of {len(some)} images of {listing.root} that were tried can be read.")
    return int(median(sides))


def _side(image: Path | bytes) -> int | None:
    try:
        return min(open_image(image, None).size)
    except BadImage:
        return None


def _refuse_doubtful(photos: Photos) -> None:
    """Raise for class names that are nearly always a mistake."""
    classes, counts = set(photos.classes), dict(zip(photos.classes, photos.counts, strict=True))
    spelled = Counter(map(_spelling, photos.classes))
    alike = sorted((name for name in photos.classes if spelled[_spelling(name)] > 1), key=_spelling)
    joined = [name for name in photos.classes if ({*_BETWEEN.split(name)} - {name}) & classes]
    letters = {name: re.sub(r"[\W_]+", "", name.casefold()) for name in photos.classes}
    waiting = [name for name in photos.classes if letters[name] in NOT_YET or means_no_value(name)]
    for what, names, todo in (
        ("differ only in capital letters or spaces", alike, "Write each class in one way"),
        ("name several classes", joined, "Keep one of them, or no label"),
        ("mean no label yet", waiting, f"Leave the label empty, or use the folder {photos.folder / UNLABELED_NAME}"),
    ):
        if names:
            named = shown([f"{name!r} ({counts[name]:,})" for name in names], limit=NAMED)
            allow = "or allow such names: --allow-names, in Python allow_names=True"
            raise DataError(f"{photos.table or photos.folder} has classes that {what}: {named}. {todo}, {allow}.")


def _spelling(name: str) -> str:
    return " ".join(name.casefold().split())

"""What a folder of photos holds: images, labels, classes and sizes. Class names that are nearly always a mistake are
refused before training, unless the user allows them."""

import re
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
from debiaspl.data.text import counted, means_no_value, shown

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

    def with_count(self, name: str) -> str:
        """A class with its number of labels, for a message."""
        count = self.counts[self.classes.index(name)]
        return f"{name!r} ({count:,} photo{'' if count == 1 else 's'})"

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
    photos = _surveyed(list_folder(folder, table, columns=columns, folders=use), table, columns, use)
    stored = stored_for(features)
    photos = replace(photos, features=features, side=stored.side if stored else photos.side)
    _refuse_doubtful(photos, folders, allow_names)
    return photos


def survey_for_start(folder: Path, table: Path | None, columns: Columns = USUAL, no_labels: bool = False) -> Photos:
    """The same for features that are learned without labels: none are needed, and two or more classes are kept, from a
    table, or from folders where all images lie in class folders. ``no_labels`` looks at neither."""
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
        found = f"{folder} holds {len(listing.files)} images, expected {FEWEST_IMAGES} or more"
        raise DataError(f"{found}. Add photos without a label too: most of what is learned comes from them.")
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


def _refuse_doubtful(photos: Photos, folders: str | None, allow_names: bool) -> None:
    """Raise for classes that are likely a mistake, and for labels that would be lost."""
    if not allow_names and (doubt := _alike(photos) or _joined(photos) or _waiting(photos)):
        raise DataError(f"{photos.source} has {doubt}, allow it: --allow-names, or allow_names=True in Python.")
    if folders != "ignore" and photos.passed_over:
        named = shown(sorted({file.split("/")[0] for file in photos.passed_over}))
        found = f"{counted(photos.passed_over, 'photo')} in folders named like its classes: {named}"
        todo = "If these folders are labels too: --folders use; if only the table counts: --folders ignore"
        raise DataError(f'{photos.source} gives no label to {found}. {todo} (in Python: folders="use" or "ignore").')


def _alike(photos: Photos) -> str:
    """Class names that differ only in capital letters and spaces: nearly always a typing mistake."""
    spelled: dict[str, list[str]] = {}
    for name in photos.classes:
        spelled.setdefault(" ".join(name.casefold().split()), []).append(name)
    groups = [group for group in spelled.values() if len(group) > 1]
    if not groups:
        return ""
    named = "; ".join(" and ".join(map(photos.with_count, group)) for group in groups[:NAMED])
    more = f"; and {len(groups) - NAMED} more" if len(groups) > NAMED else ""
    how = "move the photos of one folder to the other and remove it" if photos.in_folders else "write one of them"
    return f"class names that differ only in capital letters or spaces: {named}{more}. If they are one, {how}. If not"


def _joined(photos: Photos) -> str:
    """Names that are composed of other classes: two classes for one photo."""
    joined, parts = [], set()
    for name in photos.classes:
        if own := {part for part in _BETWEEN.split(name) if part in photos.classes and part != name}:
            joined.append(photos.with_count(name))
            parts |= own
    if not joined:
        return ""
    both = f"{shown(joined, limit=NAMED)} as well as {shown(sorted(parts), limit=2 * NAMED)}"
    return f"{both}. If that is several classes for one photo, keep one of them, or no label. If it is a class"


def _waiting(photos: Photos) -> str:
    """Names of photos that have no label yet."""
    waiting = [
        photos.with_count(name)
        for name in photos.classes
        if re.sub(r"[\W_]+", "", name.casefold()) in NOT_YET or means_no_value(name)
    ]
    if not waiting:
        return ""
    how = f"rename the folder to {photos.folder / 'unlabeled'}" if photos.in_folders else "leave the label empty"
    return f"the class {shown(waiting, limit=NAMED)}. If these photos have no label yet, {how}. If it is a class"

"""Class names that are nearly always a mistake: refused before training, unless the user allows them."""

import re
from typing import NamedTuple

from debiaspl.data import DataError
from debiaspl.data.class_names import means_no_value
from debiaspl.data.errors import counted, shown
from debiaspl.photos.survey import Photos

NAMED = 5
"""Groups of classes that a message names."""
NOT_YET = frozenset(
    ("rest", "remaining", "todo", "tolabel", "tobelabeled", "tobelabelled", "unsorted", "unclassified", "uncategorized")
)
"""Names, in lower case and without signs, that usually mean "not labeled yet"."""
_BETWEEN = re.compile(r"\s*[,;|/+&]\s*|\s+and\s+")


class Allowed(NamedTuple):
    """What the user allows, and whether class folders beside a table are labels."""

    names: bool = False
    """Whether names may be alike or doubtful."""
    folders: str | None = None
    python: bool = False
    """Whether errors name arguments of ``debiaspl.train_photos`` instead of options of the command line."""

    def check(self, photos: Photos) -> None:
        """Refuse classes that are likely a mistake, and labels that would be lost."""
        if self.folders not in (None, "use", "ignore"):
            raise ValueError(f"{'' if self.python else '--'}folders is {self.folders!r}, expected use or ignore.")
        if not self.names:
            refuse_alike(photos, self.python)
            refuse_doubtful(photos, self.python)
        if self.folders != "ignore":
            refuse_passed_over(photos, self.python)


def refuse_doubtful(photos: Photos, python: bool = False) -> None:
    """Raise where a class is probably none: two classes for one photo, or photos without a label yet."""
    allow = "allow_names=True" if python else "--allow-names"
    joined = {name: parts for name in photos.classes if (parts := _parts(name, photos.classes))}
    counts = dict(zip(photos.classes, photos.counts, strict=True))
    if joined:
        told = shown([_told(name, counts) for name in joined], limit=NAMED)
        others = shown(sorted({part for parts in joined.values() for part in parts}), limit=2 * NAMED)
        raise DataError(
            f"{photos.source} has {told} as well as {others}. If that means several classes for one photo: it would be "
            "learned as a class of its own. Keep one class for each photo, or leave it without a label. If it is a "
            f"class, allow it: {allow}."
        )
    waiting = [
        name for name in photos.classes if re.sub(r"[\W_]+", "", name.casefold()) in NOT_YET or means_no_value(name)
    ]
    if waiting:
        told = shown([_told(name, counts) for name in waiting], limit=NAMED)
        how = f"rename the folder to {photos.folder / 'unlabeled'}" if photos.in_folders else "leave the label empty"
        raise DataError(
            f"{photos.source} has the class {told}. If these photos have no label yet, {how}; otherwise they would be "
            f"learned as a class. If it is a class, allow it: {allow}."
        )


def refuse_passed_over(photos: Photos, python: bool = False) -> None:
    """Raise where labels would be lost: there is a table, and also folders named like its classes."""
    if not photos.passed_over:
        return
    use, ignore = ('folders="use"', 'folders="ignore"') if python else ("--folders use", "--folders ignore")
    folders = sorted({file.split("/")[0] for file in photos.passed_over})
    raise DataError(
        f"{photos.source} gives no label to {counted(photos.passed_over, 'photo')} in folders named like its classes: "
        f"{shown(folders)}. If these folders are labels too: {use}. If only the table counts: {ignore}."
    )


def _parts(name: str, classes: tuple[str, ...]) -> list[str]:
    """The classes that a name is composed of; none for a plain name."""
    parts = _BETWEEN.split(name)
    return [part for part in parts if part in classes and part != name] if len(parts) > 1 else []


def refuse_alike(photos: Photos, python: bool = False) -> None:
    """Raise where class names differ only in capital letters and spaces: nearly always a typing mistake."""
    groups = alike(photos.classes)
    if not groups:
        return
    counts = dict(zip(photos.classes, photos.counts, strict=True))
    told = "; ".join(" and ".join(_told(name, counts) for name in group) for group in groups[:NAMED])
    more = f"; and {len(groups) - NAMED} more" if len(groups) > NAMED else ""
    todo = ", ".join(_todo(group, counts, photos.in_folders) for group in groups[:NAMED])
    allow = "allow_names=True" if python else "--allow-names"
    how = "move photos from one folder to the other and remove the empty one" if photos.in_folders else "write"
    raise DataError(
        f"{photos.source} has class names that differ only in capital letters or spaces: {told}{more}. Each would be "
        f"learned as a class of its own. If they are one, {how}: {todo}. If they are not, allow it: {allow}."
    )


def alike(classes: tuple[str, ...]) -> list[list[str]]:
    """Groups of names that are equal except for case and spaces."""
    groups: dict[str, list[str]] = {}
    for name in classes:
        groups.setdefault(" ".join(name.casefold().split()), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _told(name: str, counts: dict[str, int]) -> str:
    return f"{name!r} ({counts[name]:,} photo{'' if counts[name] == 1 else 's'})"


def _todo(group: list[str], counts: dict[str, int], in_folders: bool) -> str:
    """The spelling to keep: one without odd spaces that most photos have."""
    tidy = {name: " ".join(name.split()) == name for name in group}
    right = max(group, key=lambda name: (tidy[name], counts[name]))
    wrong = " and ".join(repr(name) for name in group if name != right)
    return f"{wrong} to {right!r}" if in_folders else f"{right!r} instead of {wrong}"

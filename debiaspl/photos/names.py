"""Class names that are nearly always a mistake: refused before training, unless the user allows them."""

import re
from typing import NamedTuple

from debiaspl.data import DataError
from debiaspl.data.text import counted, means_no_value, shown
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
        if not self.names and (doubt := _alike(photos) or _joined(photos) or _waiting(photos)):
            allow = "allow_names=True" if self.python else "--allow-names"
            raise DataError(f"{photos.source} has {doubt}, allow it: {allow}.")
        if self.folders != "ignore" and photos.passed_over:
            use, ignore = "--folders use", "--folders ignore"
            if self.python:
                use, ignore = 'folders="use"', 'folders="ignore"'
            folders = sorted({file.split("/")[0] for file in photos.passed_over})
            raise DataError(
                f"{photos.source} gives no label to {counted(photos.passed_over, 'photo')} in folders named like its "
                f"classes: {shown(folders)}. If these folders are labels too: {use}. If only the table counts: "
                f"{ignore}."
            )


def _alike(photos: Photos) -> str:
    """Class names that differ only in capital letters and spaces: nearly always a typing mistake."""
    groups, counts = alike(photos.classes), _counts(photos)
    if not groups:
        return ""
    named = "; ".join(" and ".join(_with_count(name, counts) for name in group) for group in groups[:NAMED])
    more = f"; and {len(groups) - NAMED} more" if len(groups) > NAMED else ""
    how = "move photos from one folder to the other and remove the empty one" if photos.in_folders else "write"
    todo = []
    for group in groups[:NAMED]:
        # Keep a spelling without odd spaces that most photos have.
        right = max(group, key=lambda name: (" ".join(name.split()) == name, counts[name]))
        wrong = " and ".join(repr(name) for name in group if name != right)
        todo.append(f"{wrong} to {right!r}" if photos.in_folders else f"{right!r} instead of {wrong}")
    return (
        f"class names that differ only in capital letters or spaces: {named}{more}. Each would be learned as a class "
        f"of its own. If they are one, {how}: {', '.join(todo)}. If they are not"
    )


def alike(classes: tuple[str, ...]) -> list[list[str]]:
    """Groups of names that are equal except for case and spaces."""
    groups: dict[str, list[str]] = {}
    for name in classes:
        groups.setdefault(" ".join(name.casefold().split()), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _joined(photos: Photos) -> str:
    """Names that are composed of other classes: two classes for one photo."""
    joined, parts = [], set()
    for name in photos.classes:
        if own := {part for part in _BETWEEN.split(name) if part in photos.classes and part != name}:
            joined.append(_with_count(name, _counts(photos)))
            parts |= own
    if not joined:
        return ""
    return (
        f"{shown(joined, limit=NAMED)} as well as {shown(sorted(parts), limit=2 * NAMED)}. If that means several "
        "classes for one photo: it would be learned as a class of its own. Keep one class for each photo, or leave it "
        "without a label. If it is a class"
    )


def _waiting(photos: Photos) -> str:
    """Names of photos that have no label yet."""
    waiting = [
        _with_count(name, _counts(photos))
        for name in photos.classes
        if re.sub(r"[\W_]+", "", name.casefold()) in NOT_YET or means_no_value(name)
    ]
    if not waiting:
        return ""
    how = f"rename the folder to {photos.folder / 'unlabeled'}" if photos.in_folders else "leave the label empty"
    return (
        f"the class {shown(waiting, limit=NAMED)}. If these photos have no label yet, {how}; otherwise they would be "
        "learned as a class. If it is a class"
    )


def _counts(photos: Photos) -> dict[str, int]:
    return dict(zip(photos.classes, photos.counts, strict=True))


def _with_count(name: str, counts: dict[str, int]) -> str:
    return f"{name!r} ({counts[name]:,} photo{'' if counts[name] == 1 else 's'})"

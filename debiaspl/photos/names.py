"""Names of classes that are nearly always a mistake: refused before anything is trained, unless they are meant."""

import re
from typing import NamedTuple

from debiaspl.data import DataError
from debiaspl.data.errors import counted, shown
from debiaspl.photos.survey import Photos

NAMED = 5
"""Groups of classes that a message names."""
NOT_YET = frozenset(
    ("rest", "remaining", "todo", "tolabel", "tobelabeled", "tobelabelled", "unsorted", "unclassified", "uncategorized")
)
"""Names, without capitals and signs, that may be a class, and more often mean: not looked at yet."""
_BETWEEN = re.compile(r"\s*[,;|/+&]\s*|\s+and\s+")


class Allowed(NamedTuple):
    """What the user allows, and has said of folders beside a table."""

    alike: bool = False
    doubtful: bool = False
    folders: str | None = None
    python: bool = False
    """Whether errors name arguments of ``debiaspl.train_photos`` instead of options of the command line."""

    def check(self, photos: Photos) -> None:
        """Refuse classes that are likely a mistake, and labels that would be lost."""
        if self.folders not in (None, "use", "ignore"):
            raise ValueError(f"{'' if self.python else '--'}folders is {self.folders!r}, expected use or ignore.")
        if not self.alike:
            refuse_alike(photos, self.python)
        if not self.doubtful:
            refuse_doubtful(photos, self.python)
        if self.folders != "ignore":
            refuse_passed_over(photos, self.python)


def refuse_doubtful(photos: Photos, python: bool = False) -> None:
    """Raise where a class is likely none: two classes for one photo, or photos that wait for a label."""
    allow = "allow_names=True" if python else "--allow-names"
    joined = {name: parts for name in photos.classes if (parts := _parts(name, photos.classes))}
    counts = dict(zip(photos.classes, photos.counts, strict=True))
    if joined:
        told = shown([f"{name!r} ({_photos(counts[name])})" for name in joined], limit=NAMED)
        others = shown(sorted({part for parts in joined.values() for part in parts}), limit=2 * NAMED)
        raise DataError(
            f"{photos.source} has {told} beside {others}: is that several classes for one photo? It would be learned "
            "as a class of its own. Keep one class for each photo, or leave it without a label. If it is a class, "
            f"allow it: {allow}."
        )
    waiting = [name for name in photos.classes if re.sub(r"[\W_]+", "", name.casefold()) in NOT_YET]
    if waiting:
        told = shown([f"{name!r} ({_photos(counts[name])})" for name in waiting], limit=NAMED)
        how = f"rename the folder to {photos.folder / 'unlabeled'}" if photos.in_folders else "leave the label empty"
        raise DataError(
            f"{photos.source} has the class {told}. If these photos have no label yet, {how}; else they would be "
            f"learned as a class. If it is a class, allow it: {allow}."
        )


def refuse_passed_over(photos: Photos, python: bool = False) -> None:
    """Raise where labels would be lost: a table is there, and folders are called like its classes."""
    if not photos.passed_over:
        return
    use, ignore = ('folders="use"', 'folders="ignore"') if python else ("--folders use", "--folders ignore")
    folders = sorted({file.split("/")[0] for file in photos.passed_over})
    raise DataError(
        f"{photos.source} gives no label to {counted(photos.passed_over, 'photo')} in folders that are called like "
        f"its classes: {shown(folders)}. Are these folders labels too? Then {use}; else {ignore}, and the table "
        "alone counts."
    )


def _parts(name: str, classes: tuple[str, ...]) -> list[str]:
    """Classes that a name is put together of, where there is one or more; none for a plain name."""
    parts = _BETWEEN.split(name)
    return [part for part in parts if part in classes and part != name] if len(parts) > 1 else []


def _photos(count: int) -> str:
    return f"{count:,} photo{'' if count == 1 else 's'}"


def refuse_alike(photos: Photos, python: bool = False) -> None:
    """Raise where names of classes differ in capital letters and spaces alone: nearly always one class and a slip."""
    groups = alike(photos.classes)
    if not groups:
        return
    counts = dict(zip(photos.classes, photos.counts, strict=True))
    told = "; ".join(" and ".join(_told(name, counts) for name in group) for group in groups[:NAMED])
    more = f"; and {len(groups) - NAMED} more" if len(groups) > NAMED else ""
    todo = ", ".join(_todo(group, counts, photos.in_folders) for group in groups[:NAMED])
    allow = "allow_alike=True" if python else "--allow-alike"
    how = "move photos from one folder to the other and remove the empty one" if photos.in_folders else "write"
    raise DataError(
        f"{photos.source} has names that differ in capital letters or spaces alone: {told}{more}. Each would be "
        f"learned as a class of its own. If they are one, {how}: {todo}. If they are not, allow it: {allow}."
    )


def alike(classes: tuple[str, ...]) -> list[list[str]]:
    """Names that are one, but for their case and spaces."""
    groups: dict[str, list[str]] = {}
    for name in classes:
        groups.setdefault(" ".join(name.casefold().split()), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _told(name: str, counts: dict[str, int]) -> str:
    return f"{name!r} ({_photos(counts[name])})"


def _todo(group: list[str], counts: dict[str, int], in_folders: bool) -> str:
    """The spelling to keep: one without odd spaces that most photos have."""
    tidy = {name: " ".join(name.split()) == name for name in group}
    right = max(group, key=lambda name: (tidy[name], counts[name]))
    wrong = " and ".join(repr(name) for name in group if name != right)
    return f"{wrong} to {right!r}" if in_folders else f"{right!r} instead of {wrong}"

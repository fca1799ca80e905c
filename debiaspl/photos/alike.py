"""Classes whose names differ in capital letters and spaces alone: nearly always one class and a slip."""

from debiaspl.data import DataError
from debiaspl.data.class_names import UNLABELED_NAME
from debiaspl.photos.survey import Photos

FEW = 5
"""Classes that a message names."""


def refuse_alike(photos: Photos) -> None:
    """Raise where a slip of the keyboard would be learned as a class of its own."""
    groups = alike(photos.classes)
    if not groups:
        return
    counts = dict(zip(photos.classes, photos.counts, strict=True))
    told = "; ".join(" and ".join(_told(name, counts) for name in group) for group in groups[:FEW])
    more = f"; and {len(groups) - FEW} more" if len(groups) > FEW else ""
    todo = ", ".join(_todo(group, counts, photos.in_folders) for group in groups[:FEW])
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

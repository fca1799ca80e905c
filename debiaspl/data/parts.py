"""Whether a folder is cut into train, val and test: those are parts of a data set, not classes."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

NAMES = frozenset(
    ("train", "training", "val", "valid", "validation", "dev", "eval", "evaluation", "test", "testing", "holdout")
)


class Parts(NamedTuple):
    """What such a folder holds."""

    names: list[str]
    """The parts, sorted."""
    main: str
    """The one to train on."""
    classes: list[str]
    """The folders in it, sorted."""


def find_parts(folders: Iterable[str], files: Sequence[str]) -> Parts | None:
    """The parts, where these cannot be classes: all folders are named like parts, and one or more of them hold nothing
    but folders, two or more. ``files`` are relative to the folder that holds the ``folders``."""
    names = sorted(folders)
    if not names or any(name.casefold() not in NAMES for name in names):
        return None
    inner = {name: {file.split("/")[1] for file in files if file.startswith(f"{name}/")} for name in names}
    loose = {file.split("/")[0] for file in files if file.count("/") == 1}
    cut = [name for name in names if len(inner[name]) > 1 and name not in loose]
    if not cut:
        return None
    main = next((name for name in cut if name.casefold().startswith("train")), cut[0])
    return Parts(names, main, sorted(inner[main]))

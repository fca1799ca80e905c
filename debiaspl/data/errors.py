"""Data that are not what they should be."""

from collections.abc import Sequence
from pathlib import Path


class DataError(ValueError):
    """The message says what was found, what was expected and what to do."""


def damaged(file: Path | str, found: str, expected: str, place: Path, name: str) -> DataError:
    """A file of the known set ``name``, which lies at ``place``, is not the official one."""
    return DataError(f"{file} is damaged or not the official file: {found}, expected {expected}. {again(place, name)}")


def again(place: Path, name: str) -> str:
    """What to do about a known set that is damaged."""
    return f"Remove {place} and run: debiaspl data get {name}"


def shown(names: Sequence[str], limit: int = 5) -> str:
    """The first names, for a message; those with line breaks or broken letters as Python writes them."""
    first = ", ".join(name if name.isprintable() else repr(name) for name in names[:limit])
    return f"{first} and {len(names) - limit} more" if len(names) > limit else first


def counted(things: Sequence[object], noun: str) -> str:
    """How many, with the noun in its right form."""
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"

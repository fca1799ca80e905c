"""Data that are not what they should be."""

from pathlib import Path


class DataError(ValueError):
    """The message says what was found, what was expected and what to do."""


def damaged(file: Path | str, found: str, expected: str, place: Path, name: str) -> DataError:
    """A file of the known set ``name``, which lies at ``place``, is not the official one."""
    return DataError(f"{file} is damaged or not the official file: {found}, expected {expected}. {again(place, name)}")


def again(place: Path, name: str) -> str:
    """What to do about a known set that is damaged."""
    return f"Remove {place} and run: debiaspl data get {name}"

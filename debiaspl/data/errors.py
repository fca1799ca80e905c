"""Errors about data, and helpers for their messages."""

import shlex
from collections.abc import Sequence
from pathlib import Path


class DataError(ValueError):
    """Bad data; the message says what was found, what was expected and what to do."""


def damaged(file: Path | str, found: str, expected: str, place: Path, name: str) -> DataError:
    """The error for a file of the known set ``name`` at ``place`` that is not the official one."""
    return DataError(f"{file} is damaged or not the official file: {found}, expected {expected}. {again(place, name)}")


def again(place: Path, name: str) -> str:
    """What to do about a damaged known set."""
    return f"Remove {place} and run: debiaspl data get {name}"


def no_labels(root: Path) -> DataError:
    """The error for a folder without any label, where training needs some: the three ways to get them."""
    photos = shlex.quote(str(root))
    return DataError(
        f"no image of {root} has a label yet. Expected labels of two classes or more. Label a few images of every "
        f'class: debiaspl label {photos} --classes "..."; or train with class names alone: debiaspl zeroshot {photos} '
        f'--classes "..."; or, if there are labels already, name their table, with the columns file_name,label: '
        f"--labels TABLE, or move the images into a folder for each class: {root}/CLASS/*.jpg."
    )


def shown(names: Sequence[str], limit: int = 5) -> str:
    """The first names, for a message; names with line breaks or undecodable bytes as Python literals."""
    first = ", ".join(name if name.isprintable() else repr(name) for name in names[:limit])
    return f"{first} and {len(names) - limit} more" if len(names) > limit else first


def counted(things: Sequence[object], noun: str) -> str:
    """A number with its noun, in singular or plural."""
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"

"""The unchecked content of a file of predictions, the names of its columns, and its errors."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl.files import memory

MATRICES = ("probabilities", "logits")
PREFIXES = {"probabilities": ("probability:", "probability_"), "logits": ("logit:", "logit_")}
USUAL = {
    "label": ("label", "prediction", "predicted", "pred", "y_pred", "preds", "predictions", "predicted_label"),
    "truth": ("truth", "y_true", "true", "true_label", "target", "ground_truth"),
    "confidence": ("confidence", "score", "probability", "prob"),
    "file": ("file_name", "filename", "file", "path", "image", "image_path", "image_id"),
}
"""Names of columns by role, the own one first."""
Names = Mapping[str, str]
"""Role -> a column of another name than the usual ones; for a matrix an array, or the prefix of columns."""
SUM_TOLERANCE = 0.02
"""Largest deviation of a sum from 1, for a thousand probabilities written with four digits."""


class PredictionsError(ValueError):
    """These predictions cannot be audited; the message says what was found, what was expected and what to do."""


def refuse_larger_than_memory(path: Path, size: float) -> None:
    """Raise if the content does not fit in memory: a small file may unpack to any size."""
    if not memory.fits(size):
        raise PredictionsError(
            f"{path} needs {memory.lack_of(size)}. Split the file, or use a machine with more memory."
        )


def listed(values: Iterable[object], most: int = 8) -> str:
    """A few of the values, quoted, and the number of the others."""
    return _first([repr(str(value)) for value in values], most)


def reason(error: Exception) -> str:
    """The reason of an error, for the middle of a sentence: without a full stop at its end."""
    return (str(error).strip().splitlines() or ["it is truncated"])[0].rstrip(". ")


def rows_named(rows: Iterable[int]) -> str:
    """Row numbers for a message: positions from 0 become numbers from 1."""
    numbers = [f"{row + 1:,}" for row in rows]
    return f"row{'s' if len(numbers) > 1 else ''} {_first(numbers, 3)}"


def _first(words: list[str], most: int) -> str:
    return ", ".join(words[:most]) + (f" and {len(words) - most:,} more" if len(words) > most else "")


def refuse_other_kinds(name: str, values: NDArray[Any] | None) -> None:
    """Raise for times, complex numbers and records, which are neither classes nor numbers."""
    if values is not None and values.dtype.kind not in "biufOSU":
        raise PredictionsError(
            f"{name!r} contains values of type {values.dtype}, expected numbers, or names as text. Convert it."
        )


def repeated(names: Iterable[str]) -> list[str]:
    """Values that occur more than once."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def column_of(role: str, columns: Iterable[str], names: Names) -> str | None:
    """The column of this role: as given, else the first usual name that is there."""
    if role in names:
        return names[role]
    lower = {name.lower(): name for name in columns}
    return next((lower[name] for name in USUAL[role] if name in lower), None)


@dataclass(frozen=True, eq=False)
class Raw:
    """A table of predictions as it was read."""

    origin: str
    """Where it was read from, for messages."""
    fields: Mapping[str, NDArray[Any]]
    """Columns with one value per prediction."""
    matrices: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """``probabilities`` and ``logits``: one row per prediction."""
    classes: tuple[str, ...] | None = None
    """Names of the classes in the order of the scores, if the file has them."""

    @property
    def rows(self) -> int:
        return max((len(values) for values in (*self.fields.values(), *self.matrices.values())), default=0)


@dataclass(frozen=True)
class Layout:
    """Which columns of a table belong to a matrix; the others are single values."""

    groups: Mapping[str, list[str]]
    """Matrix -> columns of numbers."""
    cells: Mapping[str, tuple[str, list[Any]]]
    """Matrix -> a column of lists, or of objects with a number per class; and the places or classes in each."""
    classes: tuple[str, ...] | None = None

    @classmethod
    def of(cls, first: Mapping[str, Any], names: Names) -> "Layout":
        """By the first row: lists, prefixes of names, else the columns that hold probabilities of classes."""
        held = [name for name, cell in first.items() if isinstance(cell, list | dict | np.ndarray)]
        lists = {matrix: key for matrix in MATRICES if (key := names.get(matrix, matrix)) in held}
        if others := [name for name in held if name not in lists.values()]:
            kinds = f"--column probabilities={others[0]} or --column logits={others[0]}"
            raise PredictionsError(
                f"the columns {listed(others)} contain lists, expected numbers. If they are scores: {kinds}."
            )
        cells = {
            matrix: (key, list(cell) if isinstance(cell := first[key], dict) else list(range(len(cell))))
            for matrix, key in lists.items()
        }
        classes = next((tuple(first[key]) for key in lists.values() if isinstance(first[key], dict)), None)
        single = {column_of(role, first, names) for role in USUAL} | set(held)
        groups: dict[str, list[str]] = {}
        for matrix in MATRICES:
            for prefix in (names[matrix],) if matrix in names else PREFIXES[matrix]:
                members = [name for name in first if name.startswith(prefix) and name not in single]
                if len(members) > 1 and matrix not in (*groups, *lists):
                    groups[matrix], classes = members, tuple(name[len(prefix) :] for name in members)
        if not (groups or lists or names.keys() & set(MATRICES)):
            others = [name for name in first if name not in single]
            label = column_of("label", first, names)
            if _are_probabilities([first[name] for name in others]) and (label is None or first.get(label) in others):
                groups["probabilities"], classes = others, tuple(others)
        return cls(groups, cells, classes)

    @property
    def numbers(self) -> list[str]:
        """The columns of all groups."""
        return [name for members in self.groups.values() for name in members]


def _are_probabilities(cells: list[Any]) -> bool:
    values = [float(cell) for cell in cells if is_number(cell)]
    all_numbers = len(values) == len(cells) > 1
    return all_numbers and min(values) >= 0 and math.isclose(sum(values), 1, abs_tol=SUM_TOLERANCE)

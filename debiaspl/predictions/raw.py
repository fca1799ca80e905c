"""The unchecked content of a file of predictions, the names of its columns, and its errors."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl.files import memory

MATRICES = ("probabilities", "logits", "embeddings")
STEMS = {"probabilities": "probability", "logits": "logit", "embeddings": "embedding"}


class PredictionsError(ValueError):
    """These predictions cannot be audited; the message says what was found, what was expected and what to do."""


def refuse_larger_than_memory(path: Path, size: float) -> None:
    """Raise if the content does not fit in memory: a small file may unpack to any size."""
    if not memory.fits(size):
        raise PredictionsError(
            f"{path} needs {memory.gigabytes(size)} of memory, but only {memory.gigabytes(memory.free_memory())} are "
            "free. Split the file, or use a machine with more memory."
        )


def listed(values: Iterable[object], most: int = 8) -> str:
    """A few of the values, quoted, and the number of the others."""
    return _first([repr(str(value)) for value in values], most)


def reason(error: Exception) -> str:
    """The reason of an error, for the middle of a sentence: without a full stop at its end."""
    return (str(error).strip().splitlines() or ["it is truncated"])[0].rstrip(". ")


def refuse_other_kinds(name: str, values: NDArray[Any] | None) -> None:
    """Raise for times, complex numbers and records, which are neither classes nor numbers."""
    if values is not None and values.dtype.kind not in "biufOSU":
        raise PredictionsError(
            f"{name!r} contains values of type {values.dtype}, expected numbers, or names as text. Convert it."
        )


def rows_named(rows: Iterable[int], most: int = 3) -> str:
    """Row numbers for a message: positions from 0 become numbers from 1."""
    numbers = [f"{row + 1:,}" for row in rows]
    return f"row{'s' if len(numbers) > 1 else ''} {_first(numbers, most)}"


def _first(words: list[str], most: int) -> str:
    return ", ".join(words[:most]) + (f" and {len(words) - most:,} more" if len(words) > most else "")


@dataclass(frozen=True)
class Names:
    """Names of the columns or arrays of a file; None: the default name, if it is there."""

    label: str | None = None
    """The predicted class; by default ``label``."""
    truth: str | None = None
    """The true class; by default ``truth``."""
    confidence: str | None = None
    """The probability of the predicted class; by default ``confidence``."""
    file_name: str | None = None
    """The image; by default ``file_name``."""
    probabilities: str | None = None
    """An array; in a table with one column per class, their prefix: by default ``probability:``."""
    logits: str | None = None
    """The same for logits; by default ``logit:``."""
    embeddings: str | None = None
    """The same for embeddings; by default ``embedding:``. Or a ``.npy`` file with a row per prediction."""

    def beginnings(self, matrix: str) -> tuple[str, ...]:
        """Prefixes of the columns of a matrix in a table."""
        given: str | None = getattr(self, matrix)
        return (f"{STEMS[matrix]}:", f"{STEMS[matrix]}_") if given is None else (given,)


@dataclass(frozen=True, eq=False)
class Raw:
    """A table of predictions as it was read."""

    origin: str
    """Where it was read from, for messages."""
    fields: Mapping[str, NDArray[Any]]
    """Columns with one value per prediction."""
    matrices: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """``probabilities``, ``logits`` and ``embeddings``: one row per prediction."""
    classes: tuple[str, ...] | None = None
    """Names of the classes in the order of the scores, if the file has them."""

    @property
    def rows(self) -> int:
        return max((len(values) for values in (*self.fields.values(), *self.matrices.values())), default=0)


@dataclass(frozen=True)
class ColumnGroups:
    """Which columns of a table are single values, and which belong to a matrix."""

    single: tuple[int, ...]
    groups: Mapping[str, tuple[int, ...]]
    classes: tuple[str, ...] | None

    @classmethod
    def of(cls, header: list[str], names: Names) -> "ColumnGroups":
        """Group the columns of a table by their prefix."""
        groups: dict[str, tuple[int, ...]] = {}
        classes: tuple[str, ...] | None = None
        wanted = {getattr(names, item) for item in ("label", "truth", "confidence", "file_name")}
        for matrix in MATRICES:
            for start in names.beginnings(matrix):
                members = tuple(
                    place for place, name in enumerate(header) if name.startswith(start) and name not in wanted
                )
                if len(members) > 1 and matrix not in groups:
                    groups[matrix] = members
                    if matrix != "embeddings":
                        classes = tuple(header[place][len(start) :] for place in members)
        grouped = {place for members in groups.values() for place in members}
        return cls(tuple(place for place in range(len(header)) if place not in grouped), groups, classes)


def repeated(names: Iterable[str]) -> list[str]:
    """Values that occur more than once."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def is_number(value: object) -> bool:
    """Whether a cell can be read as a number."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def as_text(values: list[str]) -> NDArray[Any]:
    """A column of text that takes no more memory than its strings."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column

"""Reads JSON lines, with one object per prediction, and tasks of Label Studio: as ``debiaspl predict`` writes them or,
for tasks, exported again with people's answers."""

import json
import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl.predictions.raw import MATRICES, ColumnGroups, Names, PredictionsError, Raw, as_text, listed, reason


def read_jsonl(path: Path, names: Names) -> Raw:
    """Keys are the columns of CSV; a matrix may also be one key with a list, or an object with a number per class."""
    rows = _rows(path)
    first = next(rows, None)
    if first is None:
        raise PredictionsError(f"{path} is empty, expected one prediction per line, as an object.")
    matrices = _matrices(first, names)
    single: dict[str, list[str]] = {}
    count = 0
    for count, row in enumerate(chain([first], rows), 1):
        for key in row:
            if key not in single and not any(matrix.owns(key) for matrix in matrices):
                single[key] = [""] * (count - 1)
        for key, cells in single.items():
            cells.append(_text(row.get(key), key, count))
        for matrix in matrices:
            matrix.add(row, count)
    fields = {key: as_text(cells) for key, cells in single.items()}
    classes = next((matrix.classes for matrix in matrices if matrix.classes is not None), None)
    return Raw(str(path), fields, {matrix.name: matrix.values(count) for matrix in matrices}, classes)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise PredictionsError(
                    f"line {number:,} of {path} is not JSON: {reason(error)}. Expected one complete object per line."
                ) from error
            if not isinstance(row, dict):
                raise PredictionsError(f"line {number:,} of {path} is not an object, expected one prediction per line.")
            yield row


def _text(value: Any, key: str, row: int) -> str:
    """A value as CSV would store it; null is empty."""
    if isinstance(value, dict | list):
        raise PredictionsError(
            f"row {row:,} has {'an object' if isinstance(value, dict) else 'a list'} in {key!r}, expected text or a "
            f"number. For the scores of every class, use --probabilities {key} or --logits {key}."
        )
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else str(value)


class _Matrix:
    """Numbers of one kind, row by row: under one key as a list or an object, or with one key each."""

    def __init__(self, name: str, key: str | None, places: Sequence[Any], classes: tuple[str, ...] | None) -> None:
        self.name, self.classes = name, classes
        self._key, self._places, self._known = key, places, frozenset(places)
        self._numbers = array("f")

    def owns(self, key: str) -> bool:
        return key in self._known if self._key is None else key == self._key

    def add(self, row: dict[str, Any], number: int) -> None:
        found = row if self._key is None else row.get(self._key)
        if isinstance(found, list):
            found = dict(enumerate(found))
        if (
            not isinstance(found, dict)
            or not found.keys() >= self._known
            or (self._key and len(found) > len(self._known))
        ):
            raise PredictionsError(
                f"row {number:,} lacks the {self.name} that row 1 has, expected {len(self._places):,} numbers "
                f"in every row: those of {listed(self._places, 3)}."
            )
        for place in self._places:
            self._numbers.append(self._number(found[place], place, number))

    def values(self, rows: int) -> NDArray[Any]:
        return np.frombuffer(self._numbers, np.float32).reshape(rows, -1)

    def _number(self, value: Any, place: Any, row: int) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise PredictionsError(
                f"row {row:,} has {value!r} for {str(place)!r} in its {self.name}, expected a number."
            )
        try:
            return float(value)
        except OverflowError:
            return math.inf


def _matrices(first: dict[str, Any], names: Names) -> list[_Matrix]:
    """The matrices in the first row."""
    found: dict[str, _Matrix] = {}
    for name in MATRICES:
        key = getattr(names, name) or name
        value = first.get(key)
        if isinstance(value, dict) and value:
            found[name] = _Matrix(name, key, tuple(value), None if name == "embeddings" else tuple(value))
        elif isinstance(value, list) and value:
            found[name] = _Matrix(name, key, range(len(value)), None)
    header = [key for key in first if not any(matrix.owns(key) for matrix in found.values())]
    layout = ColumnGroups.of(header, names)
    for name, members in layout.groups.items():
        classes = None if name == "embeddings" else layout.classes
        found.setdefault(name, _Matrix(name, None, tuple(header[place] for place in members), classes))
    return list(found.values())


def read_tasks(path: Path, names: Names) -> Raw:
    """The first prediction of each task; a person's choice is the truth."""
    try:
        tasks = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise PredictionsError(f"{path} cannot be read as JSON: {reason(error)}.") from error
    if isinstance(tasks, dict) and "source" in tasks and "counts" in tasks:
        raise PredictionsError(
            f"{path} contains the results of an audit, expected predictions. Audit the file that it was "
            f"made from: {tasks['source']}"
        )
    if not isinstance(tasks, list) or not all(isinstance(task, dict) and "data" in task for task in tasks):
        raise PredictionsError(
            f"{path} contains no Label Studio tasks, expected a list of them. Write one object per prediction on a "
            "separate line, in a file that ends in .jsonl."
        )
    if not tasks:
        raise PredictionsError(f"{path} has no tasks, expected one per image.")
    rows = [_row(task, number, path) for number, task in enumerate(tasks, 1)]
    columns = dict(zip(("file_name", "label", "confidence", "truth"), zip(*rows, strict=True), strict=True))
    if not all(columns["confidence"]):  # it can only be used for all rows
        del columns["confidence"]
    if not any(columns["truth"]):
        del columns["truth"]
    return Raw(str(path), {name: as_text(list(cells)) for name, cells in columns.items()})


def _row(task: dict[str, Any], number: int, path: Path) -> tuple[str, str, str, str]:
    data = task["data"] if isinstance(task["data"], dict) else {}
    score, label = _chosen(task.get("predictions"))
    if not label:
        raise PredictionsError(
            f"task {number:,} of {path} has no prediction with a choice, expected one in every task. "
            "debiaspl predict --format label-studio writes such tasks."
        )
    name = data.get("file_name") or data.get("image") or ""
    return str(name), label, score, _chosen(task.get("annotations"))[1]


def _chosen(entries: Any) -> tuple[str, str]:
    """Score and choice of the first entry that has one and was not cancelled; empty if there is none."""
    from debiaspl.data.label_studio import choices_of  # imports torch, which other formats do not need

    for entry, _, choices in choices_of(entries):
        if len(choices) == 1:
            score = entry.get("score")
            return "" if score is None else str(score), choices[0]
    return "", ""

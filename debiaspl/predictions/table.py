"""Reads CSV: a header, and a row per prediction."""

import csv
from array import array
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from debiaspl.files import unguarded
from debiaspl.predictions.raw import (
    ColumnGroups,
    Names,
    PredictionsError,
    Raw,
    as_text,
    is_number,
    listed,
    reason,
    repeated,
)

LARGE_FILE = 64 * 2**20
"""Size in bytes from which on CSV is read with pyarrow, if installed: several times as fast on two cores."""

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators of other programs."""


def read_csv(path: Path, names: Names) -> Raw:
    """Read a table. Numbers of a matrix are float32; everything else stays text."""
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        rows = _rows(csv.reader(file), path)
        header = _checked(next(rows, []), path, names)
        layout = ColumnGroups.of(header, names)
        if path.stat().st_size >= LARGE_FILE and find_spec("pyarrow") is not None:
            from debiaspl.predictions.parquet import read_large_csv

            read = read_large_csv(path, header, layout)
            if read is not None:
                return read
        return read_small_csv(path, header, layout, rows)


def read_small_csv(path: Path, header: list[str], layout: ColumnGroups, rows: Iterator[list[str]]) -> Raw:
    """Read row by row; errors name the row."""
    single: dict[int, list[str]] = {place: [] for place in layout.single}
    groups = {matrix: array("f") for matrix in layout.groups}
    count = 0
    for count, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise PredictionsError(
                f"row {count:,} of {path} has {len(row)} cells, expected {len(header)} as in the header. "
                "Put text with a comma in double quotes."
            )
        for place, cells in single.items():
            cells.append(unguarded(row[place]))
        for matrix, places in layout.groups.items():
            groups[matrix].extend(_numbers(row, places, header, count))
    fields = {header[place]: as_text(cells) for place, cells in single.items()}
    matrices = {name: np.frombuffer(found, np.float32).reshape(count, -1) for name, found in groups.items() if count}
    return Raw(str(path), fields, matrices, layout.classes)


def _rows(reader: Any, path: Path) -> Iterator[list[str]]:
    try:
        yield from (row for row in reader if row)
    except csv.Error as error:
        raise PredictionsError(f"line {reader.line_num:,} of {path} is not CSV: {reason(error)}.") from error


def _checked(header: list[str], path: Path, names: Names) -> list[str]:
    """The column names, after checking that they are different and separated by commas."""
    if not header:
        raise PredictionsError(f"{path} is empty, expected a header and one prediction per row.")
    other = next((mark for mark in SEPARATORS if mark in header[0]), None) if len(header) == 1 else None
    if other is not None and header[0] != names.label:
        raise PredictionsError(
            f"{path} has one column, {header[0]!r}, expected columns separated by commas. These seem to be separated "
            f"by {SEPARATORS[other]}: save the table again with commas (pandas: to_csv(path, sep=','))."
        )
    if twice := repeated(header):
        raise PredictionsError(f"{path} has columns of the same name ({listed(twice)}), expected different ones.")
    return header


def _numbers(row: list[str], places: tuple[int, ...], header: list[str], count: int) -> list[float]:
    try:
        return [float(row[place]) for place in places]
    except ValueError:
        bad = next(place for place in places if not is_number(row[place]))
        raise PredictionsError(
            f"row {count:,} has {row[bad]!r} in column {header[bad]!r}, expected a number."
        ) from None

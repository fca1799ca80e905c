"""Predictions as files: CSV, JSON lines, Parquet and tasks for Label Studio, written row by row."""

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from debiaspl._version import __version__

ROWS = 8192
"""Of a group in a Parquet file."""


class Row(NamedTuple):
    """One prediction; numbers are written with six digits."""

    file_name: str
    label: str
    confidence: float
    probabilities: Sequence[float] | None = None
    """Of every class, in the order of the classes, where they are asked for."""


class Layout(NamedTuple):
    """What all rows of a table have in common."""

    classes: tuple[str, ...]
    probabilities: bool = False
    """Whether rows have those of every class."""
    image_prefix: str = ""
    """What stands before the quoted path of an image, for Label Studio."""


class Table(Protocol):
    """A file under way."""

    def write(self, rows: Sequence[Row]) -> None: ...

    def close(self) -> None: ...


class CsvTable:
    """``file_name,label,confidence`` and, if asked for, ``probability:CLASS`` for each class."""

    def __init__(self, path: Path, layout: Layout) -> None:
        # Names of files that are no UTF-8 come as surrogates, and go back to the bytes they were.
        self._file = path.open("w", encoding="utf-8", errors="surrogateescape", newline="")
        head = ["file_name", "label", "confidence"]
        self._line([*head, *(f"probability:{name}" for name in layout.classes if layout.probabilities)])

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            numbers = [row.confidence, *(row.probabilities or ())]
            self._line([row.file_name, row.label, *(f"{number:.6f}" for number in numbers)])

    def close(self) -> None:
        self._file.close()

    def _line(self, cells: Sequence[str]) -> None:
        self._file.write(",".join(map(cell, cells)) + "\n")


def cell(text: str) -> str:
    """A cell of a CSV file. Quoted also where Python's csv would not: a lone carriage return ends a line for many
    readers, and spaces at an end are lost."""
    if re.search(r'[,"\r\n]|^\s|\s$|^$', text):
        return '"' + text.replace('"', '""') + '"'
    return text


class JsonLines:
    """An object a line: ``file_name``, ``label``, ``confidence`` and, if asked for, ``probabilities`` by class."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self._file, self._layout = path.open("w", encoding="ascii", newline=""), layout

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            value: dict[str, Any] = {"file_name": row.file_name, "label": row.label, "confidence": _six(row.confidence)}
            if row.probabilities is not None:
                value["probabilities"] = dict(zip(self._layout.classes, map(_six, row.probabilities), strict=True))
            self._file.write(json.dumps(value) + "\n")

    def close(self) -> None:
        self._file.close()


class ParquetTable:
    """The columns of the CSV file, with their types; groups of rows go to the disk as they fill."""

    def __init__(self, path: Path, layout: Layout) -> None:
        arrow = needs_pyarrow()
        import pyarrow.parquet

        columns = [("file_name", arrow.string()), ("label", arrow.string()), ("confidence", arrow.float64())]
        columns += [(f"probability:{name}", arrow.float64()) for name in layout.classes if layout.probabilities]
        self._arrow, self._schema = arrow, arrow.schema(columns)
        self._writer = pyarrow.parquet.ParquetWriter(path, self._schema)
        self._rows: list[Row] = []

    def write(self, rows: Sequence[Row]) -> None:
        self._rows += rows
        if len(self._rows) >= ROWS:
            self._flush()

    def close(self) -> None:
        try:
            self._flush()
        finally:
            self._writer.close()

    def _flush(self) -> None:
        if not self._rows:
            return
        numbers = [[_six(n) for n in (row.confidence, *(row.probabilities or ()))] for row in self._rows]
        columns = [
            [row.file_name for row in self._rows],
            [row.label for row in self._rows],
            *map(list, zip(*numbers, strict=True)),
        ]
        arrays = [self._arrow.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []


class LabelStudio:
    """Tasks with a prediction each, for Label Studio's import; the labelling interface is in docs/deploy.md."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self._file, self._layout, self._before = path.open("w", encoding="ascii", newline=""), layout, "[\n"

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._file.write(self._before + json.dumps(self._task(row)))
            self._before = ",\n"

    def close(self) -> None:
        with self._file:
            self._file.write("[]\n" if self._before == "[\n" else "\n]\n")

    def _task(self, row: Row) -> dict[str, Any]:
        # Quoted byte by byte: an address holds no blanks, no letters beyond ASCII and no second question mark.
        image = self._layout.image_prefix + quote(os.fsencode(row.file_name))
        choice = {"from_name": "label", "to_name": "image", "type": "choices", "value": {"choices": [row.label]}}
        prediction = {"model_version": f"debiaspl {__version__}", "score": _six(row.confidence), "result": [choice]}
        return {"data": {"image": image, "file_name": row.file_name}, "predictions": [prediction]}


TABLES: dict[str, Callable[[Path, Layout], Table]] = {
    "csv": CsvTable,
    "jsonl": JsonLines,
    "parquet": ParquetTable,
    "label-studio": LabelStudio,
}
ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def format_of(out: Path, named: str | None) -> str:
    """Which format a file shall have, by name or else by its ending; a format that cannot be written is refused."""
    found = named or ENDINGS.get(out.suffix.lower())
    if found not in TABLES:
        what = f"--format is {named!r}" if named else f"the ending of {out} tells no format"
        raise ValueError(f"{what}, expected --format {', '.join(TABLES)}, or an ending: {' '.join(ENDINGS)}.")
    if found == "parquet":
        needs_pyarrow()
    return found


def needs_pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'debiaspl[parquet]', or write CSV.") from error
    return pyarrow


def _six(number: float) -> float:
    return round(number, 6)

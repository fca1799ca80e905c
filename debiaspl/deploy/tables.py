"""Predictions as files: CSV, JSON lines, Parquet and tasks for Label Studio, written row by row."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol
from urllib.parse import quote

from debiaspl._version import __version__
from debiaspl.data.csv_text import csv_line

ROWS = 8192
"""Of a group in a Parquet file."""


class Prediction(NamedTuple):
    """One prediction; numbers are written with six digits."""

    file_name: str
    label: str
    confidence: float
    probabilities: Sequence[float] | None = None
    """Of every class, in the order of the classes, where they are asked for."""


class TableSettings(NamedTuple):
    """What all rows of a table have in common."""

    classes: tuple[str, ...]
    probabilities: bool = False
    """Whether rows have those of every class."""
    image_prefix: str = ""
    """What stands before the quoted path of an image, for Label Studio."""


class OpenTable(Protocol):
    """Rows on their way into an open file, which stays open."""

    def write(self, rows: Sequence[Prediction]) -> None: ...

    def close(self) -> None: ...


class CsvTable:
    """``file_name,label,confidence`` and, if asked for, ``probability:CLASS`` for each class."""

    def __init__(self, file: BinaryIO, settings: TableSettings) -> None:
        self._file = file
        head = ["file_name", "label", "confidence"]
        self._line([*head, *(f"probability:{name}" for name in settings.classes if settings.probabilities)])

    def write(self, rows: Sequence[Prediction]) -> None:
        for row in rows:
            numbers = [row.confidence, *(row.probabilities or ())]
            self._line([row.file_name, row.label, *(f"{number:.6f}" for number in numbers)])

    def close(self) -> None:
        pass

    def _line(self, cells: Sequence[str]) -> None:
        # Names of files that are no UTF-8 come as surrogates, and go back to the bytes they were.
        self._file.write(csv_line(cells).encode(errors="surrogateescape"))


class JsonLines:
    """An object a line: ``file_name``, ``label``, ``confidence`` and, if asked for, ``probabilities`` by class."""

    def __init__(self, file: BinaryIO, settings: TableSettings) -> None:
        self._file, self._settings = file, settings

    def write(self, rows: Sequence[Prediction]) -> None:
        for row in rows:
            value: dict[str, Any] = {"file_name": row.file_name, "label": row.label, "confidence": _six(row.confidence)}
            if row.probabilities is not None:
                value["probabilities"] = dict(zip(self._settings.classes, map(_six, row.probabilities), strict=True))
            self._file.write(f"{json.dumps(value)}\n".encode("ascii"))

    def close(self) -> None:
        pass


class ParquetTable:
    """The columns of the CSV file, with their types; groups of rows go to the disk as they fill."""

    def __init__(self, file: BinaryIO, settings: TableSettings) -> None:
        arrow = needs_pyarrow()
        import pyarrow.parquet

        columns = [("file_name", arrow.string()), ("label", arrow.string()), ("confidence", arrow.float64())]
        columns += [(f"probability:{name}", arrow.float64()) for name in settings.classes if settings.probabilities]
        self._arrow, self._schema = arrow, arrow.schema(columns)
        self._writer = pyarrow.parquet.ParquetWriter(file, self._schema)
        self._rows: list[Prediction] = []

    def write(self, rows: Sequence[Prediction]) -> None:
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

    def __init__(self, file: BinaryIO, settings: TableSettings) -> None:
        self._file, self._settings, self._before = file, settings, "[\n"

    def write(self, rows: Sequence[Prediction]) -> None:
        for row in rows:
            self._file.write(f"{self._before}{json.dumps(self._task(row))}".encode("ascii"))
            self._before = ",\n"

    def close(self) -> None:
        self._file.write(b"[]\n" if self._before == "[\n" else b"\n]\n")

    def _task(self, row: Prediction) -> dict[str, Any]:
        # Quoted byte by byte: an address holds no blanks, no letters beyond ASCII and no second question mark.
        image = self._settings.image_prefix + quote(os.fsencode(row.file_name))
        choice = {"from_name": "label", "to_name": "image", "type": "choices", "value": {"choices": [row.label]}}
        prediction = {"model_version": f"debiaspl {__version__}", "score": _six(row.confidence), "result": [choice]}
        return {"data": {"image": image, "file_name": row.file_name}, "predictions": [prediction]}


TABLES: dict[str, Callable[[BinaryIO, TableSettings], OpenTable]] = {
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

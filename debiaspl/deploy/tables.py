"""Writes predictions row by row: CSV, JSON lines and Parquet."""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from debiaspl._checks import extra
from debiaspl.data.text import csv_line

ROWS = 8192
"""Rows per group in a Parquet file."""


class Prediction(NamedTuple):
    """One prediction; numbers are written with six digits."""

    file_name: str
    label: str
    confidence: float
    probabilities: Sequence[float] = ()
    """Of every class, in the order of the classes, if requested."""


def write_csv(file: BinaryIO, classes: Sequence[str], rows: Iterable[Prediction]) -> None:
    """``file_name,label,confidence`` and ``probability:CLASS`` for each class, if rows have probabilities of them."""
    file.write(csv_line(_columns(classes)).encode())
    for row in rows:
        numbers = (f"{number:.6f}" for number in (row.confidence, *row.probabilities))
        # File names that are not UTF-8 contain surrogates, which become the original bytes again.
        file.write(csv_line([row.file_name, row.label, *numbers]).encode(errors="surrogateescape"))


def write_json_lines(file: BinaryIO, classes: Sequence[str], rows: Iterable[Prediction]) -> None:
    """One object per line: ``file_name``, ``label``, ``confidence`` and, if requested, ``probabilities`` by class."""
    for row in rows:
        value: dict[str, Any] = {"file_name": row.file_name, "label": row.label, "confidence": _six(row.confidence)}
        if classes:
            value["probabilities"] = dict(zip(classes, map(_six, row.probabilities), strict=True))
        file.write(f"{json.dumps(value)}\n".encode("ascii"))


def write_parquet(file: BinaryIO, classes: Sequence[str], rows: Iterable[Prediction]) -> None:
    """The columns of the CSV file, with their types; groups of rows are written as they fill."""
    import pyarrow as arrow
    import pyarrow.parquet

    types = {"file_name": arrow.string(), "label": arrow.string()}
    schema = arrow.schema([(name, types.get(name, arrow.float64())) for name in _columns(classes)])
    rows = iter(rows)
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(rows, ROWS)):
            cells = [(row.file_name, row.label, *map(_six, (row.confidence, *row.probabilities))) for row in group]
            columns = zip(zip(*cells, strict=True), schema.types, strict=True)
            arrays = [arrow.array(column, kind) for column, kind in columns]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def _columns(classes: Sequence[str]) -> list[str]:
    return ["file_name", "label", "confidence", *(f"probability:{name}" for name in classes)]


Writer = Callable[[BinaryIO, Sequence[str], Iterable[Prediction]], None]
"""Takes the file, the classes whose probabilities rows have, and the rows."""
TABLES: dict[str, Writer] = {
    ".csv": write_csv,
    ".jsonl": write_json_lines,
    ".ndjson": write_json_lines,
    ".parquet": write_parquet,
}


def table_writer(out: Path) -> Writer:
    """The format of a table, from its extension. Raises if that is unknown or cannot be written."""
    write = TABLES.get(out.suffix.lower())
    if write is None:
        raise ValueError(f"the extension of {out} is not known, expected {' '.join(TABLES)}.")
    if write is write_parquet:
        extra("pyarrow", "Parquet files need pyarrow: pip install 'debiaspl[parquet]', or write CSV.")
    return write


def _six(number: float) -> float:
    return round(number, 6)

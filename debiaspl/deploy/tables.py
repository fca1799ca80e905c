"""Writes predictions row by row: CSV, JSON lines, Parquet and tasks for Label Studio."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote

from debiaspl._checks import extra
from debiaspl._version import __version__
from debiaspl.data.text import csv_line

ROWS = 8192
"""Rows per group in a Parquet file."""


class Prediction(NamedTuple):
    """One prediction; numbers are written with six digits."""

    file_name: str
    label: str
    confidence: float
    probabilities: Sequence[float] | None = None
    """Of every class, in the order of the classes, if requested."""


class TableSettings(NamedTuple):
    """Settings of a table."""

    classes: tuple[str, ...]
    probabilities: bool = False
    """Whether rows have the probabilities of every class."""
    image_prefix: str = ""
    """Prefix of the quoted path of an image, for Label Studio."""


Rows = Iterable[Sequence[Prediction]]
"""Predictions in batches, as they are made."""


def write_csv(file: BinaryIO, settings: TableSettings, batches: Rows) -> None:
    """``file_name,label,confidence`` and, if requested, ``probability:CLASS`` for each class."""
    file.write(csv_line(_columns(settings)).encode())
    for row in chain.from_iterable(batches):
        numbers = [row.confidence, *(row.probabilities or ())]
        # File names that are not UTF-8 contain surrogates, which become the original bytes again.
        line = csv_line([row.file_name, row.label, *(f"{number:.6f}" for number in numbers)])
        file.write(line.encode(errors="surrogateescape"))


def write_json_lines(file: BinaryIO, settings: TableSettings, batches: Rows) -> None:
    """One object per line: ``file_name``, ``label``, ``confidence`` and, if requested, ``probabilities`` by class."""
    for row in chain.from_iterable(batches):
        value: dict[str, Any] = {"file_name": row.file_name, "label": row.label, "confidence": _six(row.confidence)}
        if row.probabilities is not None:
            value["probabilities"] = dict(zip(settings.classes, map(_six, row.probabilities), strict=True))
        file.write(f"{json.dumps(value)}\n".encode("ascii"))


def write_parquet(file: BinaryIO, settings: TableSettings, batches: Rows) -> None:
    """The columns of the CSV file, with their types; groups of rows are written as they fill."""
    arrow = needs_pyarrow()
    import pyarrow.parquet

    types = {"file_name": arrow.string(), "label": arrow.string()}
    schema = arrow.schema([(name, types.get(name, arrow.float64())) for name in _columns(settings)])
    rows = chain.from_iterable(batches)
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(rows, ROWS)):
            numbers = [[_six(n) for n in (row.confidence, *(row.probabilities or ()))] for row in group]
            names = [row.file_name for row in group], [row.label for row in group]
            columns = zip((*names, *map(list, zip(*numbers, strict=True))), schema.types, strict=True)
            arrays = [arrow.array(column, kind) for column, kind in columns]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def write_label_studio(file: BinaryIO, settings: TableSettings, batches: Rows) -> None:
    """Tasks with one prediction each, for Label Studio's import; the labelling interface is in docs/deploy.md."""
    before = "[\n"
    for row in chain.from_iterable(batches):
        file.write(f"{before}{json.dumps(_task(row, settings))}".encode("ascii"))
        before = ",\n"
    file.write(b"[]\n" if before == "[\n" else b"\n]\n")


def _task(row: Prediction, settings: TableSettings) -> dict[str, Any]:
    # Quoted byte by byte: an address has no spaces, no characters beyond ASCII and no second question mark.
    image = settings.image_prefix + quote(os.fsencode(row.file_name))
    choice = {"from_name": "label", "to_name": "image", "type": "choices", "value": {"choices": [row.label]}}
    prediction = {"model_version": f"debiaspl {__version__}", "score": _six(row.confidence), "result": [choice]}
    return {"data": {"image": image, "file_name": row.file_name}, "predictions": [prediction]}


def _columns(settings: TableSettings) -> list[str]:
    shares = settings.classes if settings.probabilities else ()
    return ["file_name", "label", "confidence", *(f"probability:{name}" for name in shares)]


Writer = Callable[[BinaryIO, TableSettings, Rows], None]
TABLES: dict[str, Writer] = {
    ".csv": write_csv,
    ".jsonl": write_json_lines,
    ".ndjson": write_json_lines,
    ".parquet": write_parquet,
    ".json": write_label_studio,
}


def table_writer(out: Path) -> Writer:
    """The format of a table, from its extension. Raises if that is unknown or cannot be written."""
    write = TABLES.get(out.suffix.lower())
    if write is None:
        raise ValueError(f"the extension of {out} is not known, expected {' '.join(TABLES)} (tasks of Label Studio).")
    if write is write_parquet:
        needs_pyarrow()
    return write


def needs_pyarrow() -> Any:
    return extra("pyarrow", "Parquet files need pyarrow: pip install 'debiaspl[parquet]', or write CSV.")


def _six(number: float) -> float:
    return round(number, 6)

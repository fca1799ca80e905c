"""Predictions as files: CSV, JSON lines, Parquet and tasks for Label Studio, written row by row."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote

from debiaspl._extras import extra
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


Rows = Iterable[Sequence[Prediction]]
"""Predictions as they come, some at a time."""


def write_csv(file: BinaryIO, settings: TableSettings, batches: Rows) -> None:
    """``file_name,label,confidence`` and, if asked for, ``probability:CLASS`` for each class."""
    file.write(csv_line(_columns(settings)).encode())
    for row in chain.from_iterable(batches):
        numbers = [row.confidence, *(row.probabilities or ())]
        # Names of files that are no UTF-8 come as surrogates, and go back to the bytes they were.
        line = csv_line([row.file_name, row.label, *(f"{number:.6f}" for number in numbers)])
        file.write(line.encode(errors="surrogateescape"))


def write_json_lines(file: BinaryIO, settings: TableSettings, batches: Rows) -> None:
    """An object a line: ``file_name``, ``label``, ``confidence`` and, if asked for, ``probabilities`` by class."""
    for row in chain.from_iterable(batches):
        value: dict[str, Any] = {"file_name": row.file_name, "label": row.label, "confidence": _six(row.confidence)}
        if row.probabilities is not None:
            value["probabilities"] = dict(zip(settings.classes, map(_six, row.probabilities), strict=True))
        file.write(f"{json.dumps(value)}\n".encode("ascii"))


def write_parquet(file: BinaryIO, settings: TableSettings, batches: Rows) -> None:
    """The columns of the CSV file, with their types; groups of rows go to the disk as they fill."""
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
    """Tasks with a prediction each, for Label Studio's import; the labelling interface is in docs/deploy.md."""
    before = "[\n"
    for row in chain.from_iterable(batches):
        file.write(f"{before}{json.dumps(_task(row, settings))}".encode("ascii"))
        before = ",\n"
    file.write(b"[]\n" if before == "[\n" else b"\n]\n")


def _task(row: Prediction, settings: TableSettings) -> dict[str, Any]:
    # Quoted byte by byte: an address holds no blanks, no letters beyond ASCII and no second question mark.
    image = settings.image_prefix + quote(os.fsencode(row.file_name))
    choice = {"from_name": "label", "to_name": "image", "type": "choices", "value": {"choices": [row.label]}}
    prediction = {"model_version": f"debiaspl {__version__}", "score": _six(row.confidence), "result": [choice]}
    return {"data": {"image": image, "file_name": row.file_name}, "predictions": [prediction]}


def _columns(settings: TableSettings) -> list[str]:
    shares = settings.classes if settings.probabilities else ()
    return ["file_name", "label", "confidence", *(f"probability:{name}" for name in shares)]


TABLES: dict[str, Callable[[BinaryIO, TableSettings, Rows], None]] = {
    "csv": write_csv,
    "jsonl": write_json_lines,
    "parquet": write_parquet,
    "label-studio": write_label_studio,
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
    return extra("pyarrow", "Parquet files need pyarrow: pip install 'debiaspl[parquet]', or write CSV.")


def _six(number: float) -> float:
    return round(number, 6)

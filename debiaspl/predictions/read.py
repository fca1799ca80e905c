"""Read predictions from a file or a run folder. Tables are read with pandas, in parts; text stays text."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from debiaspl._checks import extra
from debiaspl.files import parse_json, unguarded
from debiaspl.predictions.npz import read_npz
from debiaspl.predictions.predictions import Predictions, predictions_from
from debiaspl.predictions.table import (
    MATRICES,
    Layout,
    Names,
    PredictionsError,
    Raw,
    is_number,
    listed,
    reason,
    refuse_larger_than_memory,
    repeated,
)

if TYPE_CHECKING:
    import pandas as pd

PART_NUMBERS = 4_000_000
"""Numbers of JSON lines that are read at a time."""
BYTES_OF_NUMBER = 4
READ = "a .csv, .jsonl, .npz or .parquet file"
NEEDS_PANDAS = "reading tables of predictions needs pandas: pip install 'debiaspl[audit]'."


def read_predictions(path: Path, names: Names | None = None, classes: Sequence[str] | None = None) -> Predictions:
    """Read a CSV, ``.jsonl``, ``.npz`` or Parquet file, or the folder of a finished run. ``classes`` are all class
    names, in order, if the file does not contain them."""
    names = names or {}
    if path.is_dir():
        from debiaspl.data.tensor_file import classes_of_run  # imports torch, which other cases do not need

        classes = classes_of_run(path) if classes is None else classes
        raw = replace(read_csv(_predictions_of_run(path), names), origin=str(path))
    else:
        size, reader = path.stat().st_size, READERS.get(path.suffix.lower())
        if reader is None:
            raise PredictionsError(f"{path} ends in {path.suffix or 'nothing'!r}, expected {READ}, or a run's folder.")
        refuse_larger_than_memory(path, size)
        raw = reader(path, names)
    for matrix in MATRICES:
        if matrix in names and matrix not in raw.matrices:
            found = listed([*raw.fields, *raw.matrices]) or "none"
            raise PredictionsError(f"{raw.origin} has no {matrix} named {names[matrix]!r}. It has {found}.")
    predictions = predictions_from(raw, names, classes)
    return replace(predictions, label_counts=_labels_of_run(path, len(predictions.classes)))


def _labels_of_run(folder: Path, classes: int) -> NDArray[np.int64] | None:
    try:
        results = parse_json((folder / "results.json").read_text())
        counts = np.asarray(results["labels"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return counts if counts.shape == (classes,) and counts.dtype.kind == "i" and counts.sum() > 0 else None


def read_csv(path: Path, names: Names) -> Raw:
    """Read a header and a row per prediction. Numbers of a matrix are float32; everything else stays text."""
    pd = extra("pandas", f"{path}: {NEEDS_PANDAS}")
    with _lines(path) as rows:
        header, first = next(rows, []), next(rows, None)
    if not header:
        raise PredictionsError(f"{path} is empty, expected a header and one prediction per row.")
    if twice := repeated(header):
        raise PredictionsError(f"{path} has columns of the same name ({listed(twice)}), expected different ones.")
    if first is None:
        return Raw(str(path), {name: np.empty(0, object) for name in header})
    layout = Layout.of(dict(zip(header, first, strict=False)), names)
    if len(first) != len(header):
        _explain(path, header, layout)
    kinds = dict.fromkeys(header, object) | dict.fromkeys(layout.numbers, np.float32)
    missing = {name: ["nan", "NaN", "NAN"] for name in layout.numbers}  # an empty cell is an error, no missing number
    coding = {"encoding": "utf-8-sig", "encoding_errors": "surrogateescape"}
    try:
        table = pd.read_csv(
            path, names=header, header=0, dtype=kinds, keep_default_na=False, na_values=missing, **coding
        )
    except (ValueError, OverflowError) as error:  # a row that is too long, or text among the numbers
        _explain(path, header, layout)
        raise PredictionsError(f"{path} cannot be read as CSV: {reason(error)}.") from error
    if header[-1] not in layout.numbers and not all(table[header[-1]]):
        _explain(path, header, layout)  # pandas fills rows that are too short
    raw = _raw(path, table, layout)
    return replace(raw, fields={name: np.frompyfunc(unguarded, 1, 1)(cells) for name, cells in raw.fields.items()})


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[list[str]]]:
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        reader = csv.reader(file)
        try:
            yield (row for row in reader if row)
        except csv.Error as error:
            raise PredictionsError(f"line {reader.line_num:,} of {path} is not CSV: {reason(error)}.") from error


def _explain(path: Path, header: list[str], layout: Layout) -> None:
    """Raise for the first row that has another number of cells, or no number where one is expected."""
    with _lines(path) as rows:
        next(rows)
        for number, row in enumerate(rows, 1):
            if len(row) != len(header):
                found = f"row {number:,} of {path} has {len(row)} cells, expected {len(header)} ({listed(header, 3)})"
                raise PredictionsError(f"{found}. Separate cells by commas; put text with a comma in double quotes.")
            for name, cell in zip(header, row, strict=True):
                if name in layout.numbers and not is_number(cell):
                    raise PredictionsError(f"row {number:,} has {cell!r} in column {name!r}, expected a number.")


def read_jsonl(path: Path, names: Names) -> Raw:
    """Keys are the columns of CSV; a matrix may also be one key with a list, or an object with a number per class."""
    parts: list[Raw] = []
    layout = None
    for table in _parts_of_lines(path):
        layout = layout or Layout.of(table.iloc[0].to_dict(), names)
        parts.append(_raw(path, table, layout, sum(part.rows for part in parts)))
    if not parts:
        raise PredictionsError(f"{path} is empty, expected one prediction per line, as an object.")
    columns = dict.fromkeys(name for part in parts for name in part.fields)
    fields = {
        name: np.concatenate([part.fields.get(name, np.full(part.rows, "", object)) for part in parts])
        for name in columns
    }
    matrices = {name: np.concatenate([part.matrices[name] for part in parts]) for name in parts[0].matrices}
    return Raw(str(path), fields, matrices, parts[0].classes)


def _parts_of_lines(path: Path) -> Iterator["pd.DataFrame"]:
    """Tables of some lines each: numbers of JSON take many times the memory of those in an array."""
    pd = extra("pandas", f"{path}: {NEEDS_PANDAS}")
    rows: list[dict[str, Any]] = []
    numbers = 0
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        for place, line in enumerate(file, 1):
            try:
                row = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError) as error:
                found = f"line {place:,} of {path} is not JSON: {reason(error)}"
                raise PredictionsError(f"{found}. Expected one complete object per line.") from error
            if isinstance(row, dict):
                rows.append(row)
                numbers += sum(len(value) if isinstance(value, dict | list) else 1 for value in row.values())
            elif line.strip():
                raise PredictionsError(f"line {place:,} of {path} is not an object, expected one prediction per line.")
            if numbers > PART_NUMBERS:
                yield pd.DataFrame(rows, dtype=object)
                rows, numbers = [], 0
    if rows:
        yield pd.DataFrame(rows, dtype=object)


def read_parquet(path: Path, names: Names) -> Raw:
    """Columns as in CSV; a matrix may also be one column of lists."""
    pd = extra("pandas", f"{path}: {NEEDS_PANDAS}")
    pa = extra("pyarrow", f"{path}: reading Parquet needs pyarrow: pip install 'debiaspl[parquet]'.")
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if twice := repeated(file.schema_arrow.names):
                raise PredictionsError(
                    f"{path} has columns of the same name ({listed(twice)}), expected different ones."
                )
            first = next((batch.to_pandas() for batch in file.iter_batches(batch_size=1)), None)
            if first is None:
                return Raw(str(path), {})
            width = sum(len(cell) if isinstance(cell, np.ndarray) else 1 for cell in first.iloc[0])
            refuse_larger_than_memory(path, BYTES_OF_NUMBER * width * file.metadata.num_rows)
        return _raw(path, pd.read_parquet(path), Layout.of(first.iloc[0].to_dict(), names))
    except PredictionsError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, TypeError, MemoryError) as error:
        raise PredictionsError(f"{path} cannot be read as Parquet: {reason(error)}.") from error


def _raw(path: Path, table: "pd.DataFrame", layout: Layout, start: int = 0) -> Raw:
    """Matrices as float32, other numbers as they are, everything else as text. ``start`` is the number of its first
    row."""
    taken = [*(column for column, _ in layout.cells.values()), *layout.numbers]
    matrices = {
        name: _stack(table.reindex(columns=[column])[column], keys, name, start)
        for name, (column, keys) in layout.cells.items()
    }
    matrices |= {name: _numbers(table.reindex(columns=columns), start) for name, columns in layout.groups.items()}
    rest = table.drop(columns=taken, errors="ignore")
    return Raw(str(path), {str(name): _field(rest[name]) for name in rest}, matrices, layout.classes)


def _stack(cells: "pd.Series[Any]", keys: list[Any], name: str, start: int) -> NDArray[np.float32]:
    objects = bool(keys) and isinstance(keys[0], str)
    for row, cell in enumerate(cells, start + 1):
        kind = isinstance(cell, dict) if objects else isinstance(cell, list | np.ndarray)
        if not kind or len(cell) != len(keys) or (objects and cell.keys() != set(keys)):
            raise PredictionsError(
                f"row {row:,} lacks the {name} that row 1 has, expected {len(keys):,} numbers in every row."
            )
    try:
        matrix = np.array([[cell[key] for key in keys] for cell in cells] if objects else list(cells))
    except ValueError as error:
        raise PredictionsError(f"the {name} contain lists of lists, expected numbers in every row.") from error
    if matrix.dtype.kind not in "iuf":
        raise PredictionsError(f"the {name} contain {matrix.dtype}, expected numbers in every row.")
    return _float32(matrix)


def _numbers(table: "pd.DataFrame", start: int) -> NDArray[np.float32]:
    """Columns of numbers as a matrix; text, times and decimals would have to be guessed."""
    from pandas.api.types import infer_dtype

    for name, column in table.items():
        if infer_dtype(column, skipna=False) not in ("floating", "integer", "mixed-integer-float"):
            bad = (
                row for row, value in enumerate(column) if isinstance(value, bool) or not isinstance(value, int | float)
            )
            row = next(bad, 0)
            raise PredictionsError(
                f"row {start + row + 1:,} has {column.iloc[row]!r} in column {name!r}, expected a number."
            )
    return _float32(table.to_numpy())


def _float32(matrix: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite, which is rejected later
        return matrix.astype(np.float32, copy=False)


def _field(column: "pd.Series[Any]") -> NDArray[Any]:
    """One column, of numbers or of text; a missing value is NaN or empty."""
    if column.dtype.kind in "iufM":
        return np.asarray(column)
    texts = np.empty(len(column), object)
    texts[:] = [_text(value) for value in column.array]
    return texts


def _text(value: Any) -> str:
    """A value as CSV would store it; null is empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list | np.ndarray) or (value is not None and value == value):
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return ""


READERS: dict[str, Callable[[Path, Names], Raw]] = {
    ".csv": read_csv,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".pq": read_parquet,
}


def _predictions_of_run(folder: Path) -> Path:
    from debiaspl.data.tensor_file import classes_of_run

    path = folder / "predictions.csv"
    if path.exists():
        return path
    if not (folder / "config.json").exists():
        runs = sorted(folder.glob("*/predictions.csv"))
        expected = f"one of those in it: debiaspl audit {runs[0].parent}" if runs else "a folder with config.json."
        raise PredictionsError(f"{folder} is not a run of debiaspl, expected {expected}")
    if classes_of_run(folder) == ():
        found = f"the run in {folder} has learned without labels, so it predicts nothing"
        train = f"debiaspl train PHOTOS --set start={folder}"
        raise PredictionsError(f"{found}. Train a run that starts from it: {train}")
    state = "has ended without" if (folder / "results.json").exists() else "has not ended: it has no"
    found = f"the run in {folder} {state} predictions.csv"
    raise PredictionsError(f"{found}. To look at the rest: debiaspl report {folder}")

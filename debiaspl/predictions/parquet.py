"""Reads Parquet, and large CSV files, with pyarrow."""

from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl.files import unguarded
from debiaspl.predictions.raw import (
    MATRICES,
    ColumnGroups,
    Names,
    PredictionsError,
    Raw,
    as_text,
    listed,
    reason,
    refuse_larger_than_memory,
    repeated,
)

BYTES_OF_NUMBER = 4
BATCH_NUMBERS = 4_000_000
"""Numbers read at a time, so that there is never a second copy of the whole in memory."""


def read_parquet(path: Path, names: Names) -> Raw:
    """Columns as in CSV; a matrix may also be one column of lists."""
    if find_spec("pyarrow") is None:
        raise PredictionsError(f"{path}: reading Parquet needs pyarrow: pip install 'debiaspl[parquet]'.")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Read in pieces: a column of a million lists is as large as the file.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
            header = list(file.schema_arrow.names)
            if twice := repeated(header):
                raise PredictionsError(
                    f"{path} has columns of the same name ({listed(twice)}), expected different ones."
                )
            listed_matrices = _list_columns(file.schema_arrow, names)
            layout = ColumnGroups.of([("" if name in listed_matrices.values() else name) for name in header], names)
            _refuse_no_numbers(file.schema_arrow, layout, listed_matrices.values())
            width = max(_width(file, listed_matrices), 1)
            refuse_larger_than_memory(path, BYTES_OF_NUMBER * width * file.metadata.num_rows)
            batches = file.iter_batches(batch_size=max(1, BATCH_NUMBERS // width))
            return _gather(str(path), header, layout, listed_matrices, batches, file.metadata.num_rows)
    except PredictionsError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, TypeError, MemoryError) as error:
        raise PredictionsError(f"{path} cannot be read as Parquet: {reason(error)}.") from error


def read_large_csv(path: Path, header: list[str], layout: ColumnGroups) -> Raw | None:
    """The same as ``read_small_csv`` with pyarrow, which uses all cores; None for a file that pyarrow cannot read."""
    import pyarrow as pa
    import pyarrow.csv

    types = {header[place]: pa.string() for place in layout.single}
    types |= {header[place]: pa.float32() for places in layout.groups.values() for place in places}
    convert = pyarrow.csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False)
    reading = pyarrow.csv.ReadOptions(block_size=2**22)
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=False)
    try:
        with pyarrow.csv.open_csv(path, reading, parsing, convert) as batches:
            found = _gather(str(path), header, layout, {}, batches)
            texts = {name: as_text([unguarded(text) for text in values]) for name, values in found.fields.items()}
            return replace(found, fields=texts)
    except pa.ArrowInvalid:
        return None


def _list_columns(schema: Any, names: Names) -> dict[str, str]:
    """Columns of lists -> their matrix."""
    import pyarrow.types as kinds

    lists = [item.name for item in schema if kinds.is_list(item.type) or kinds.is_fixed_size_list(item.type)]
    wanted = {matrix: getattr(names, matrix) or matrix for matrix in MATRICES}
    found = {matrix: name for matrix, name in wanted.items() if name in lists}
    unknown = [name for name in lists if name not in found.values()]
    if unknown and not found:
        raise PredictionsError(
            f"the columns {listed(unknown)} contain lists, expected 'probabilities', 'logits' or 'embeddings'. Name "
            f"their kind: --probabilities {unknown[0]} or --logits {unknown[0]}."
        )
    return found


def _refuse_no_numbers(schema: Any, layout: ColumnGroups, lists: Iterable[str]) -> None:
    """Raise if scores or embeddings are not numbers: text, times and decimals would have to be guessed."""
    import pyarrow.types as kinds

    columns = [schema.field(place) for places in layout.groups.values() for place in places]
    found = {item.name: ("", item.type) for item in columns}
    found |= {name: ("lists of ", schema.field(name).type.value_type) for name in lists}
    for name, (of, kind) in found.items():
        if not (kinds.is_integer(kind) or kinds.is_floating(kind)):
            raise PredictionsError(
                f"the column {name!r} contains {of}{kind}, expected floating-point numbers. Convert it or leave it out."
            )


def _width(file: Any, list_columns: dict[str, str]) -> int:
    """Numbers per row, from the first row."""
    width = len(file.schema_arrow.names)
    for batch in file.iter_batches(batch_size=1, columns=list(list_columns.values())):
        return width + sum(len(column.to_pylist()[0] or ()) for column in batch.columns)
    return width


def _gather(
    origin: str,
    header: list[str],
    layout: ColumnGroups,
    lists: dict[str, str],
    batches: Iterable[Any],
    rows: int | None = None,
) -> Raw:
    """Join batches; if the number of ``rows`` is known, without a second copy of the matrices."""
    single: dict[str, list[Any]] = {header[place]: [] for place in layout.single if header[place] not in lists.values()}
    joined = {matrix: _Joined(rows) for matrix in (*layout.groups, *lists)}
    for batch in batches:
        for name, columns in single.items():
            columns.append(batch.column(name))
        for matrix, places in layout.groups.items():
            joined[matrix].add(batch.select(list(places)).to_tensor(null_to_nan=True).to_numpy())
        for matrix, name in lists.items():
            joined[matrix].add(_unlisted(batch.column(name), name))
    fields = {name: _column(columns) for name, columns in single.items()}
    matrices = {matrix: found.whole() for matrix, found in joined.items() if found.filled}
    return Raw(origin, fields, matrices, layout.classes)


class _Joined:
    """Rows of a matrix, part by part."""

    def __init__(self, rows: int | None) -> None:
        self.rows, self.filled = rows, 0
        self._parts: list[NDArray[Any]] = []

    def add(self, part: NDArray[Any]) -> None:
        with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite, which is rejected later
            part = part.astype(np.float32, copy=False)
        if self.rows is None:
            self._parts.append(part)
        else:
            if not self._parts:
                self._parts = [np.empty((self.rows, part.shape[1]), np.float32)]
            self._parts[0][self.filled : self.filled + len(part)] = part
        self.filled += len(part)

    def whole(self) -> NDArray[Any]:
        return self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts)


def _unlisted(column: Any, name: str) -> NDArray[Any]:
    """A column of lists of equal length as a matrix."""
    rows = len(column)
    numbers = column.flatten().to_numpy(zero_copy_only=False)
    lengths = set(column.value_lengths().unique().to_pylist()) if rows else {0}
    if len(lengths) != 1 or None in lengths:
        raise PredictionsError(
            f"the lists in column {name!r} have different lengths or are missing, expected one number per class."
        )
    kept: NDArray[Any] = numbers.reshape(rows, -1)
    return kept


def _column(parts: list[Any]) -> NDArray[Any]:
    """One column, of numbers or of text; a missing value is NaN or empty."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if not parts:
        return np.empty(0, object)
    whole = pa.chunked_array(parts)
    if kinds.is_dictionary(whole.type):
        whole = whole.cast(whole.type.value_type)
    if kinds.is_integer(whole.type) or kinds.is_floating(whole.type):
        return np.asarray(whole.to_numpy())
    return as_text(["" if value is None else str(value) for value in whole.to_pylist()])

"""Files of predictions that no program of ours would write: refused in plain words, never a traceback."""

import struct
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from debiaspl.files import memory
from debiaspl.predictions import PredictionsError, read_predictions
from debiaspl.report.audit import audit
from debiaspl.report.audit.findings import findings

LABELS = ["a", "b", "a"]
SCORES = [0.2, 0.3, 0.4]


def looked_at(path: Path) -> None:
    """All that ``debiaspl audit`` computes."""
    findings(audit(read_predictions(path), 0.5), "")


def refused(path: Path, message: str) -> None:
    with pytest.raises(PredictionsError, match=message):
        looked_at(path)


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", "y", "z"]),
        pa.array([True, False, True]),
        pa.array([None, None, None]),
        pa.array([Decimal("0.2"), Decimal("0.3"), Decimal("0.4")]),
        pa.array([b"1", b"2", b"3"]),
        pa.array([1, 2, 3], pa.timestamp("s")),
        pa.array([{"a": 1}] * 3),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("listed", [False, True])
def test_a_column_of_scores_that_holds_no_numbers_is_refused(tmp_path, column, listed):
    if listed:
        lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), column)
        path = parquet(tmp_path / "a.parquet", {"label": LABELS, "probabilities": lists})
        refused(path, "probabilities")
    else:
        path = parquet(
            tmp_path / "a.parquet", {"label": LABELS, "probability:a": column, "probability:b": pa.array(SCORES)}
        )
        refused(path, "'probability:a'.*number")


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.uint64()])
def test_scores_of_any_kind_of_number_make_one_matrix(tmp_path, kind):
    columns = {"probability:a": pa.array(np.array([1, 0]), kind), "probability:b": pa.array([0.0, 1.0], pa.float32())}
    assert read_predictions(parquet(tmp_path / "a.parquet", columns)).label.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["label", "probability:a", "other"])
def test_columns_of_the_same_name_are_refused(tmp_path, name):
    names = ["label", "probability:a", "probability:b", "other", name]
    columns = [pa.array(LABELS), pa.array(SCORES), pa.array(SCORES), pa.array(SCORES), pa.array(SCORES)]
    pq.write_table(pa.Table.from_arrays(columns, names), tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "columns of the same name")


@pytest.mark.parametrize("name", ["logits", "probabilities"])
def test_numbers_too_large_for_float32_are_refused(tmp_path, name):
    values = pa.array([[1e300, 0.0], [0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float64()))
    columns = {"label": pa.array(LABELS), name: values}
    refused(parquet(tmp_path / "a.parquet", columns), "finite|inf")


def test_a_parquet_bomb_is_refused(tmp_path, monkeypatch):
    """Equal lists, of which a file of some kilobytes holds gigabytes."""
    row = pa.array([0.0] * 1000, pa.float32())
    rows = 200_000
    lists = pa.FixedSizeListArray.from_arrays(pa.concat_arrays([row] * 100), 1000)
    table = pa.table({"probabilities": pa.chunked_array([lists] * (rows // 100))})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", row_group_size=rows)
    assert (tmp_path / "a.parquet").stat().st_size < 1e6
    monkeypatch.setattr(memory, "free_memory", lambda: 900_000_000)
    refused(tmp_path / "a.parquet", r"needs 0\.8 GB of memory, but only 0\.9 GB are free")


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, 2, 3], "m8[s]"),
        np.array([1, 2, 3], "M8[s]"),
        np.array([1j, 2, 3]),
        np.array([(1, 2)] * 3, [("a", int), ("b", int)]),
        np.array([b"a", b"b", b"a"], "V1"),
    ],
    ids=lambda values: str(values.dtype),
)
@pytest.mark.parametrize("what", ["label", "truth", "confidence", "classes"])
def test_arrays_that_hold_neither_numbers_nor_text_are_refused(tmp_path, values, what):
    refused(
        npz(tmp_path / "a.npz", **({"label": np.array(LABELS)} | {what: values})), f"'{what}' contains values of type"
    )


@pytest.mark.parametrize("shape", ["(3000000000000,)", "(-3,)", "(3, -1)", "(2147483648, 2147483648, 4)", "('a',)"])
def test_an_array_whose_shape_lies_is_refused(tmp_path, shape):
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(24)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as pack:
        pack.writestr("label.npy", member)
    refused(tmp_path / "a.npz", r"a\.npz cannot be read as \.npz: .*'label'")


def test_an_npz_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", label=np.zeros(30_000_000, np.uint8))
    assert (tmp_path / "a.npz").stat().st_size < 100_000
    monkeypatch.setattr(memory, "free_memory", lambda: 30_000_000)
    refused(tmp_path / "a.npz", r"needs 30\.0 MB of memory, but only 30\.0 MB are free")


def test_deep_json_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text("[" * 100_000)
    refused(tmp_path / "a.jsonl", "JSON")

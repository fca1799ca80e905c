"""Files of predictions that no program of ours would write: refused in plain words, never a traceback."""

import struct
import zipfile
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from debiaspl.files import memory
from debiaspl.predictions import PredictionsError, read_predictions
from debiaspl.report.audit import audit
from debiaspl.report.audit.findings import findings

LABELS, SCORES = ["a", "b", "a"], [0.2, 0.3, 0.4]


def refused(path, message):
    """Whatever ``debiaspl audit`` computes."""
    with pytest.raises(PredictionsError, match=message):
        findings(audit(read_predictions(path), 0.5))


def parquet(path, columns):
    pq.write_table(pa.table(columns), path)
    return path


NO_NUMBERS = (
    pa.array(["x", "y", "z"]),
    pa.array([True, False, True]),
    pa.array([None, None, None]),
    pa.array([Decimal("0.2"), Decimal("0.3"), Decimal("0.4")]),
    pa.array([b"1", b"2", b"3"]),
    pa.array([1, 2, 3], pa.timestamp("s")),
    pa.array([{"a": 1}] * 3),
)


@pytest.mark.parametrize("column", NO_NUMBERS, ids=lambda column: str(column.type))
def test_a_column_of_scores_that_holds_no_numbers_is_refused(tmp_path, column):
    lists = {"label": LABELS, "probabilities": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), column)}
    refused(parquet(tmp_path / "a.parquet", lists), "probabilities")
    columns = {"label": LABELS, "probability:a": column, "probability:b": pa.array(SCORES)}
    refused(parquet(tmp_path / "a.parquet", columns), "'probability:a'.*number")


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.uint64()])
def test_scores_of_any_kind_of_number_make_one_matrix(tmp_path, kind):
    columns = {"probability:a": pa.array(np.array([1, 0]), kind), "probability:b": pa.array([0.0, 1.0], pa.float32())}
    assert read_predictions(parquet(tmp_path / "a.parquet", columns)).label.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["label", "probability:a", "other"])
def test_columns_of_the_same_name_are_refused(tmp_path, name):
    columns = [pa.array(LABELS), *[pa.array(SCORES)] * 4]
    made = pa.Table.from_arrays(columns, ["label", "probability:a", "probability:b", "other", name])
    pq.write_table(made, tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "columns of the same name")


@pytest.mark.parametrize("name", ["logits", "probabilities"])
def test_numbers_too_large_for_float32_are_refused(tmp_path, name):
    values = pa.array([[1e300, 0.0], [0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float64()))
    refused(parquet(tmp_path / "a.parquet", {"label": LABELS, name: values}), "finite|inf")


def test_bombs_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    """Equal numbers, of which a file of some kilobytes holds gigabytes."""
    row, rows = pa.array([0.0] * 1000, pa.float32()), 200_000
    lists = pa.FixedSizeListArray.from_arrays(pa.concat_arrays([row] * 100), 1000)
    table = pa.table({"probabilities": pa.chunked_array([lists] * (rows // 100))})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", row_group_size=rows)
    np.savez_compressed(tmp_path / "a.npz", label=np.zeros(30_000_000, np.uint8))
    for name, free, needed in (("a.parquet", 900_000_000, r"0\.8 GB"), ("a.npz", 30_000_000, r"30\.0 MB")):
        assert (tmp_path / name).stat().st_size < 1e6
        monkeypatch.setattr(memory, "free_memory", lambda free=free: free)
        refused(tmp_path / name, f"needs {needed} of memory")


NO_LABELS = (
    np.array([1, 2, 3], "m8[s]"),
    np.array([1, 2, 3], "M8[s]"),
    np.array([1j, 2, 3]),
    np.array([(1, 2)] * 3, [("a", int), ("b", int)]),
    np.array([b"a", b"b", b"a"], "V1"),
)


@pytest.mark.parametrize("values", NO_LABELS, ids=lambda values: str(values.dtype))
@pytest.mark.parametrize("what", ["label", "truth", "confidence", "classes"])
def test_arrays_that_hold_neither_numbers_nor_text_are_refused(tmp_path, values, what):
    np.savez(tmp_path / "a.npz", **{"label": np.array(LABELS), what: values})
    refused(tmp_path / "a.npz", f"'{what}' contains values of type")


@pytest.mark.parametrize("shape", ["(3000000000000,)", "(-3,)", "(3, -1)", "(2147483648, 2147483648, 4)", "('a',)"])
def test_an_array_whose_shape_lies_is_refused(tmp_path, shape):
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as pack:
        pack.writestr("label.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(24))
    refused(tmp_path / "a.npz", r"a\.npz cannot be read as \.npz: .*'label'")


def test_deep_json_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text("[" * 100_000)
    refused(tmp_path / "a.jsonl", "JSON")

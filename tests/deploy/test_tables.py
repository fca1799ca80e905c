"""Whatever a class or a file is called, every format gives it back."""

import csv
import io
import json
import os

import pytest
from hypothesis import given, settings, strategies as st

from debiaspl.data.text import cell
from debiaspl.deploy.tables import TABLES, Prediction, table_writer
from debiaspl.files import unguarded
from tests.typed import rows_of

ODD = ("a,b", 'say "hi"', "two\nlines", "car\rriage", "сова", "鷺 🦉", " blanks ", "=1+1", "'", "\\", "\u2028", "")
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def write(path, rows, classes):
    with path.open("wb") as file:
        table_writer(path)(file, classes, rows)


def read(path) -> list[tuple[str, str, float]]:
    if path.suffix == ".csv":
        found = [[unguarded(row["file_name"]), unguarded(row["label"]), row["confidence"]] for row in rows_of(path)]
        return [(file, label, float(confidence)) for file, label, confidence in found]
    if path.suffix == ".parquet":
        found = of_parquet(path)
    else:
        found = [json.loads(line) for line in path.read_text().splitlines()]
    return [(row["file_name"], row["label"], row["confidence"]) for row in found]


def of_parquet(path) -> list[dict]:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist()


@pytest.mark.parametrize("ending", TABLES)
@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.tuples(names, names, st.integers(0, 10**6)), max_size=5))
def test_every_name_survives(ending, tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / f"table{ending}"
    expected = [(file, label, millionths / 10**6) for file, label, millionths in rows]
    write(path, [Prediction(*row) for row in expected], ())
    assert read(path) == expected


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_probabilities_of_odd_classes_keep_their_names(ending, tmp_path):
    shares, path = [number / 100 for number in range(len(ODD))], tmp_path / f"t{ending}"
    write(path, [Prediction("x.jpg", "b", 0.5, shares)], ODD)
    if ending == ".jsonl":
        found = json.loads(path.read_text())["probabilities"]
    else:
        (row,) = rows_of(path) if ending == ".csv" else of_parquet(path)
        found = {name.removeprefix("probability:"): float(value) for name, value in list(row.items())[3:]}
    assert found == dict(zip(ODD, shares, strict=True))


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_names_that_are_no_utf8_go_back_to_their_bytes(ending, tmp_path):
    name, path = os.fsdecode(b"caf\xe9.jpg"), tmp_path / f"t{ending}"
    write(path, [Prediction(name, "a", 0.5)], ())
    if ending == ".csv":
        assert b"caf\xe9.jpg" in path.read_bytes()
    else:
        assert read(path) == [(name, "a", 0.5)]


@settings(deadline=None, max_examples=50)
@given(names)
def test_a_cell_is_read_back_with_and_without_skipped_blanks(text):
    line = f"{cell(text)},{cell(text)}\n"
    for skip in (False, True):
        (found,) = csv.reader(io.StringIO(line, newline=""), skipinitialspace=skip)
        assert [unguarded(one) for one in found] == [text, text]


def test_an_unknown_ending_is_refused(tmp_path):
    assert table_writer(tmp_path / "A.JSONL") is TABLES[".jsonl"]
    with pytest.raises(ValueError, match="extension"):
        table_writer(tmp_path / "a.xml")

"""Whatever a class or a file is called, every format gives it back."""

import csv
import io
import json
import os
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debiaspl.data.text import cell
from debiaspl.deploy.tables import TABLES, Prediction, TableSettings, format_of
from debiaspl.files import unguarded

ODD = ("a,b", 'say "hi"', "two\nlines", "car\rriage", "сова", "鷺 🦉", " blanks ", "=1+1", "'", "\\", "\u2028", "")
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def write(format_name: str, path, rows, layout: TableSettings):
    with path.open("wb") as file:
        TABLES[format_name](file, layout, ([row] for row in rows))


def read(format_name: str, path) -> list[tuple[str, str, float]]:
    if format_name == "csv":
        with path.open(newline="", encoding="utf-8") as file:
            found = list(csv.DictReader(file))
        return [(unguarded(row["file_name"]), unguarded(row["label"]), float(row["confidence"])) for row in found]
    if format_name == "jsonl":
        found = [json.loads(line) for line in path.read_text().splitlines()]
        return [(row["file_name"], row["label"], row["confidence"]) for row in found]
    if format_name == "parquet":
        import pyarrow.parquet

        found = pyarrow.parquet.read_table(path).to_pylist()
        return [(row["file_name"], row["label"], row["confidence"]) for row in found]
    tasks = json.loads(path.read_text())
    return [_of_task(task) for task in tasks]


def _of_task(task) -> tuple[str, str, float]:
    (prediction,) = task["predictions"]
    (result,) = prediction["result"]
    assert (result["type"], result["from_name"], result["to_name"]) == ("choices", "label", "image")
    quoted = task["data"]["image"].removeprefix("/data/local-files/?d=photos/")
    assert os.fsdecode(unquote_to_bytes(quoted)) == task["data"]["file_name"]
    assert quoted.isascii()
    assert not set(quoted) & set(" ?#&\"'<>")
    return task["data"]["file_name"], *result["value"]["choices"], prediction["score"]


@pytest.mark.parametrize("format_name", TABLES)
@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.tuples(names, names, st.integers(0, 10**6)), max_size=5))
def test_every_name_survives(format_name, tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / f"table.{format_name}"
    expected = [(file, label, millionths / 10**6) for file, label, millionths in rows]
    write(format_name, path, [Prediction(*row) for row in expected], TableSettings(("a", "b"), image_prefix=PREFIX))
    assert read(format_name, path) == expected


PREFIX = "/data/local-files/?d=photos/"


@pytest.mark.parametrize("format_name", ["csv", "jsonl", "parquet"])
def test_probabilities_of_odd_classes_keep_their_names(format_name, tmp_path):
    shares = [number / 100 for number in range(len(ODD))]
    write(format_name, tmp_path / "t", [Prediction("x.jpg", "b", 0.5, shares)], TableSettings(ODD, probabilities=True))
    if format_name == "jsonl":
        found = json.loads((tmp_path / "t").read_text())["probabilities"]
    else:
        if format_name == "csv":
            with (tmp_path / "t").open(newline="", encoding="utf-8") as file:
                (row,) = csv.DictReader(file)
        else:
            import pyarrow.parquet

            (row,) = pyarrow.parquet.read_table(tmp_path / "t").to_pylist()
        found = {name.removeprefix("probability:"): float(value) for name, value in list(row.items())[3:]}
    assert found == dict(zip(ODD, shares, strict=True))


@pytest.mark.parametrize("format_name", ["csv", "jsonl", "label-studio"])
def test_names_that_are_no_utf8_go_back_to_their_bytes(format_name, tmp_path):
    name = os.fsdecode(b"caf\xe9.jpg")
    write(format_name, tmp_path / "t", [Prediction(name, "a", 0.5)], TableSettings(("a", "b"), image_prefix=PREFIX))
    content = (tmp_path / "t").read_bytes()
    if format_name == "csv":
        assert b"caf\xe9.jpg" in content
    else:
        assert read(format_name, tmp_path / "t") == [(name, "a", 0.5)]


@settings(deadline=None, max_examples=50)
@given(names)
def test_a_cell_is_read_back_with_and_without_skipped_blanks(text):
    line = f"{cell(text)},{cell(text)}\n"
    for skip in (False, True):
        (found,) = csv.reader(io.StringIO(line, newline=""), skipinitialspace=skip)
        assert [unguarded(one) for one in found] == [text, text]


def test_the_ending_tells_the_format(tmp_path):
    named = {"a.csv": "csv", "A.JSONL": "jsonl", "a.parquet": "parquet", "a.json": "label-studio"}
    assert {out: format_of(tmp_path / out) for out in named} == named
    with pytest.raises(ValueError, match="extension"):
        format_of(tmp_path / "a.xml")

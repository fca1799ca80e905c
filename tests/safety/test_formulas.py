"""File and class names that a spreadsheet would run: written so that it does not, and read back unchanged."""

import csv
import io
from pathlib import Path

from hypothesis import given, strategies as st

from debiaspl.data.file_names import FileNames
from debiaspl.data.label_table import read_label_table
from debiaspl.data.text import csv_line
from debiaspl.deploy.tables import Prediction, write_csv
from debiaspl.files import guarded, unguarded
from debiaspl.label.table import Table
from debiaspl.predictions import read_predictions

NAMES = (
    "=HYPERLINK(1).jpg",
    "+1+cmd.jpg",
    "-2 x.jpg",
    "@SUM(A1).jpg",
    "'=quoted.jpg",
    "''@.jpg",
    "plain.jpg",
    "'a.jpg",
)
FORMULA = ("=", "+", "-", "@")


def cells_of(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text(), newline="")))


@given(st.text(alphabet=st.sampled_from("'=+-@1.e a\t\n"), max_size=8))
def test_whatever_is_written_is_read_back(text):
    assert unguarded(guarded(text)) == text
    written = next(csv.reader(io.StringIO(csv_line([text, "x"]))))[0]
    assert not written.startswith(FORMULA) or float(written) is not None


def test_formulas_after_spaces_are_guarded_and_numbers_left_alone():
    for text in ("\t=1+1", "\r=1", " =1", "+1\n", "'\t@x", "+1_0"):
        assert guarded(text) == f"'{text}"
    assert csv_line(["-0.5", "+3", "-1e-5", "-inf", "-x"]) == "-0.5,+3,-1e-5,-inf,'-x\n"


def test_predictions_are_read_back_unchanged(tmp_path):
    rows = [Prediction(name, "=b" if number % 2 else "a", 0.5) for number, name in enumerate(NAMES)]
    with (tmp_path / "predicted.csv").open("wb") as file:
        write_csv(file, (), rows)
    cells = cells_of(tmp_path / "predicted.csv")
    assert not any(cell.startswith(FORMULA) for row in cells for cell in row)
    found = read_predictions(tmp_path / "predicted.csv")
    assert found.file_names == NAMES
    assert set(found.classes) == {"a", "=b"}


def test_a_table_of_labels_is_read_back_unchanged(tmp_path):
    for name in NAMES:
        (tmp_path / name).touch()
    table = Table(tmp_path / "labels.csv", FileNames(tmp_path, NAMES), ("=b", "-c"))
    table.answer_all({name: "=b" if number % 2 else "-c" for number, name in enumerate(NAMES)})
    rows = read_label_table(tmp_path / "labels.csv")
    assert {row.name: row.label for row in rows} == table.answers
    cells = cells_of(tmp_path / "labels.csv")
    assert not any(cell.startswith(FORMULA) for row in cells for cell in row)

"""Labels of a zero-shot model, read from a table by the names of the images."""

import pytest
import torch

from debiaspl.algorithms import TaughtByTable

CLASSES, IMAGES = ("owl", "a, b", "heron"), ("x/1.jpg", "2.jpg", "3.jpg", "4.jpg", "5.jpg")
TABLE = """file_name,label,confidence
3.jpg,heron,0.9
x/1.jpg,"a, b",0.4
2.jpg,owl,0.399
5.jpg,stork,1
elsewhere.jpg,owl,1
"""


def test_labels_are_taken_by_name_where_they_are_sure(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    made = TaughtByTable(CLASSES, IMAGES, table=str(tmp_path / "table.csv"))
    assert made.taught.tolist() == [1, -1, 2, -1, -1]
    assert TaughtByTable(CLASSES, IMAGES, table=str(tmp_path / "table.csv"), sure=0.3).taught.tolist()[1] == 0


def test_labels_are_state(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    saved = TaughtByTable(CLASSES, IMAGES, table=str(tmp_path / "table.csv")).state_dict()
    other = TaughtByTable(CLASSES, IMAGES)
    assert other.taught.eq(-1).all()
    other.load_state_dict(saved)
    assert other.taught.equal(torch.tensor([1, -1, 2, -1, -1]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file"),
        ("", "has the columns none; expected file_name,label,confidence"),
        ("file_name,label\n2.jpg,owl\n", "has the columns file_name, label; expected"),
        ("file_name,label,confidence\n2.jpg,owl,high\n", "line 2, has the confidence 'high', expected 0 to 1"),
        ("file_name,label,confidence\n2.jpg,owl,1.5\n", "line 2, has the confidence '1.5', expected 0 to 1"),
        ("file_name,label,confidence\n2.jpg,owl\n", "line 2, has the confidence None, expected 0 to 1"),
        ("file_name,label,confidence\n2.jpg,stork,1\n", r"none of the classes of this run \(owl, a, b, heron\)"),
        ("file_name,label,confidence\nother.jpg,owl,1\n", "belongs to other images or classes"),
    ],
)
def test_other_tables_are_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / "table.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        TaughtByTable(CLASSES, IMAGES, table=str(tmp_path / "table.csv"))


def test_sure_is_a_confidence():
    with pytest.raises(ValueError, match="sure is 4, expected a confidence"):
        TaughtByTable(CLASSES, IMAGES, sure=4)

"""Columns of other names, and exports of Label Studio, from the command line."""

import json

import pytest

from tests.data.photos import jpeg, patch
from tests.typed import refused


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Nine photos: too few to train with, which is told when their labels were read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for number in range(9):
        (tmp_path / "photos" / f"{number}.jpg").write_bytes(jpeg(patch(0, number)))
    return tmp_path / "photos"


def said(*typed: str) -> str:
    ran = refused(*typed)
    return ran


def test_train_reads_them(photos):
    (photos / "labels.csv").write_text("photo,kind\n0.jpg,cat\n1.jpg,dog\n")
    assert "has the columns photo, kind. Expected a first line with file_name and label" in said("train", "photos")
    columns = ("--column", "file=photo", "--column", "label=kind")
    assert "photos holds 9 images, expected 10 or more" in said("train", "photos", *columns)
    (photos.parent / "t.json").write_text(json.dumps([{"image": f"{n}.jpg", "choice": "ab"[n]} for n in range(2)]))
    assert "photos holds 9 images, expected 10 or more" in said("train", "photos", "--labels", "t.json")


def test_columns_of_no_table_and_roles_that_there_are_not_are_refused(photos):
    assert "expected ROLE=NAME, with a role of file, label" in said("train", "photos", "--column", "photo=file")
    assert "a role of label, truth" in said("audit", "photos", "--column", "truth")
    column = ("--column", "file=photo")
    assert "photos has no labels.csv" in said("train", "photos", *column)
    typed = ("zeroshot", "photos", "--classes", "cat,dog", *column)
    assert "--column names columns of a table" in said(*typed)


def test_they_are_for_photos_alone():
    assert "leave out --column" in said("train", "--recipe", "digits-10", "--column", "file=photo")


def test_label_and_zeroshot_read_them(photos):
    table = photos / "labels.csv"
    table.write_text("photo,kind\n0.jpg,eagle\n")
    columns = ("--column", "file=photo", "--column", "label=kind")
    typed = ("label", "photos", "--classes", "cat,dog", "--no-browser", *columns)
    assert "eagle (1)" in said(*typed)
    (photos.parent / "p.csv").write_text("file_name,cat,dog\n")
    typed = ("zeroshot", "photos", "--classes", "cat,dog", "--model", "p.csv", *columns)
    for option in ("--labels", "--evaluate"):
        assert "labels.csv has 1 label outside of the given classes: eagle" in said(*typed, option, str(table))

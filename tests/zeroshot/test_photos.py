"""A table of labels for a folder of photos: what it names and the folder does not have is told, and counted right."""

import pytest

from debiaspl.data import DataError
from debiaspl.data.table_form import Columns
from debiaspl.zeroshot.photos import read_labels, read_truth
from tests.data.photos import jpeg, patch

CLASSES = ["cat", "dog"]


@pytest.fixture
def photos(tmp_path):
    """a.jpg and b.jpg are there."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("a.jpg", "b.jpg"):
        (folder / name).write_bytes(jpeg(patch(0, 0)))
    return folder


def table_of(photos, *rows):
    table = photos.parent / "truth.csv"
    table.write_text("\n".join(["file_name,label", *rows]))
    return table


def test_rows_without_a_label_are_in_no_count(photos):
    table = table_of(photos, "a.jpg,cat", "b.jpg,", "c.jpg,dog", "d.jpg,")
    assert read_truth(photos, table, CLASSES).left_out() == [
        f"2 of the files that {table} names are not in {photos}: c.jpg, d.jpg. "
        "The numbers are those of the 1 with a label that is."
    ]
    assert read_truth(photos, table_of(photos, "a.jpg,cat", "b.jpg,"), CLASSES).left_out() == []


def test_a_table_whose_labels_are_all_of_other_files_is_not_said_to_have_none(photos):
    table = table_of(photos, "a.jpg,", "c.jpg,dog")
    with pytest.raises(DataError) as raised:
        read_truth(photos, table, CLASSES)
    assert str(raised.value) == (
        f"{table} labels no image that is in {photos}. It names these missing files: c.jpg. "
        f"Paths are relative to {photos} and written with /."
    )
    with pytest.raises(DataError, match="has no label for any image"):
        read_truth(photos, table_of(photos, "a.jpg,"), CLASSES)


def test_columns_of_other_names(photos):
    table = photos.parent / "truth.csv"
    table.write_text(f"photo,kind\na.jpg,cat\n{photos}/b.jpg,dog\n")
    columns = Columns("photo", "kind")
    assert read_truth(photos, table, CLASSES, columns).labels == read_labels(photos, table, CLASSES, columns)
    assert read_labels(photos, table, CLASSES, columns) == {"a.jpg": 0, "b.jpg": 1}

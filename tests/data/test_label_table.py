"""One reader of label tables: other column names, absolute paths, exports of Label Studio; bad ones."""

import json
import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from debiaspl.data import DataError
from debiaspl.data.label_table import Columns, LabelRow, read_label_table
from debiaspl.data.listing import list_folder
from debiaspl.data.text import csv_line, csv_rows, is_open
from tests.data.photos import jpeg, patch

FILES = ("a.jpg", "day 1/été.jpg", "day 1/c.jpg", "d,e.jpg")


@pytest.fixture
def photos(tmp_path) -> Path:
    folder = tmp_path / "photos"
    (folder / "day 1").mkdir(parents=True)
    for number, name in enumerate(FILES):
        (folder / name).write_bytes(jpeg(patch(0, number)))
    return folder


def labels(photos: Path, table: Path | None, columns: Columns | None = None) -> dict[str, str | None]:
    listing = list_folder(photos, table, columns=columns or Columns())
    names = (*listing.classes, None)
    return {file: names[label] for file, label in zip(listing.files, listing.labels.tolist(), strict=True)}


def task(image: str, *choices: list[str], data: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    results = [{"from_name": "label", "type": "choices", "value": {"choices": chosen}} for chosen in choices]
    return {"data": {"image": image, **(data or {})}, "annotations": [{"result": [one], **more} for one in results]}


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_columns_of_any_name(photos, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("Species,who,Path ,label\ncat,me,a.jpg,x\ndog,me,day 1/c.jpg,y\n")
    named = Columns("path", "species")
    assert read_label_table(table, named) == [
        LabelRow("line 2", "a.jpg", "cat"),
        LabelRow("line 3", "day 1/c.jpg", "dog"),
    ]
    found = labels(photos, table, named)
    assert found == {"a.jpg": "cat", "d,e.jpg": None, "day 1/c.jpg": "dog", "day 1/été.jpg": None}
    message = r"has the columns species, who, path, label\. Expected a first line with kind and label.*--column file="
    with pytest.raises(DataError, match=message):
        labels(photos, table, Columns("kind"))


OTHER_FORMS = {
    "image,class\na.jpg,cat\nday 1/c.jpg,dog\n": "files in the column image and labels in class",
    "who,Filename,label\nme,a.jpg,cat\nme,day 1/c.jpg,dog\n": "files in the column filename and labels in label",
    "file_name;label\na.jpg;cat\nday 1/c.jpg;dog\n": "separated by semicolons",
    "label\tphoto\ncat\ta.jpg\ndog\tday 1/c.jpg\n": "separated by tabs; files in the column photo and labels in label",
    "file_name,label\na.jpg,cat\nday 1\\c.jpg,dog\n": "",
    "file_name,label\nphotos/a.jpg,cat\n./photos/day 1/c.jpg,dog\n": "",
}
"""Tables that have one meaning only -> what is said of them."""


@pytest.mark.parametrize("text", OTHER_FORMS)
def test_what_has_one_meaning_is_read_and_told_once(photos, tmp_path, caplog, text):
    table = tmp_path / "t.csv"
    table.write_text(text)
    assert labels(photos, table) == {"a.jpg": "cat", "d,e.jpg": None, "day 1/c.jpg": "dog", "day 1/été.jpg": None}
    labels(photos, table)
    told = [f"{table} was read like this: {OTHER_FORMS[text]}."] if OTHER_FORMS[text] else []
    assert [record.message for record in caplog.records] == told


def test_a_path_below_the_folder_goes_before_one_from_above_it(photos, tmp_path):
    (photos / "photos").mkdir()
    table = tmp_path / "t.csv"
    table.write_text("file_name,label\nPHOTOS/a.jpg,cat\nday 1/c.jpg,dog\n")
    with pytest.raises(DataError, match="names 1 file not in"):
        labels(photos, table)
    (photos / "photos" / "a.jpg").write_bytes(b"")
    table.write_text("file_name,label\nphotos/a.jpg,cat\nday 1/c.jpg,dog\n")
    assert labels(photos, table)["photos/a.jpg"] == "cat"


def test_absolute_paths_inside_the_folder_are_made_relative(photos, tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(photos)
    table = tmp_path / "t.csv"
    rows = [(f"{photos}/a.jpg", "cat"), (f" {link}/day 1/c.jpg", "dog"), (f"{photos}//./d,e.jpg", "cat")]
    table.write_text("file_name,label\n" + "".join(csv_line(row) for row in rows))
    expected = {"a.jpg": "cat", "d,e.jpg": "cat", "day 1/c.jpg": "dog", "day 1/été.jpg": None}
    assert labels(photos, table) == labels(link, table) == expected
    monkeypatch.chdir(tmp_path)
    assert labels(Path("photos"), table) == expected


@pytest.mark.parametrize(
    "prefix",
    [
        *("", "{root}/", "https://example.org/", "s3://bucket/photos/", "http://localhost/data/local-files/?d=photos/"),
        *("/data/local-files/?d=photos/", "/data/local-files/?d={parent}/photos/", "/data/local-files/?d="),
    ],
)
def test_label_studio_json(photos, tmp_path, prefix):
    def image(file: str) -> str:
        return prefix.format(parent=tmp_path.name, root=photos) + (file if prefix in ("", "{root}/") else quote(file))

    tasks = [
        task(image("a.jpg"), ["cat"], ["cat"]),
        task(image("day 1/été.jpg"), ["dog"]),
        task(image("day 1/c.jpg")),
        task(image("d,e.jpg"), ["cat"], was_cancelled=True),
    ]
    found = labels(photos, write(tmp_path / "export.json", tasks))
    assert found == {"a.jpg": "cat", "d,e.jpg": None, "day 1/c.jpg": None, "day 1/été.jpg": "dog"}


def test_label_studio_min_and_uploaded_files(photos, tmp_path):
    flat = [
        {"image": "/data/upload/3/0a1b2c3d-a.jpg", "id": 1, "choice": "cat", "annotator": 1},
        {"image": "/data/upload/0a1b2c3e-c.jpg", "id": 2, "choice": {"choices": ["dog"]}},
        {"image": "/data/upload/3/0a1b2c3f-de.jpg", "id": 3},
    ]
    table = write(tmp_path / "min.json", flat)
    assert labels(photos, table) == {"a.jpg": "cat", "d,e.jpg": None, "day 1/c.jpg": "dog", "day 1/été.jpg": None}
    named = [{"photo": one["image"], "kind": one.get("choice")} for one in flat]
    assert labels(photos, write(table, named), Columns("photo", "kind"))["day 1/c.jpg"] == "dog"
    (photos / "c.jpg").write_bytes(b"")  # now there are two of that name, and uploading has lost the folder
    with pytest.raises(DataError, match=r"names 1 file not in .*: /data/upload/0a1b2c3e-c\.jpg"):
        labels(photos, table, Columns("photo", "kind"))


def test_the_file_name_of_a_task_goes_before_its_image(photos, tmp_path):
    tasks = [
        task("/data/upload/1/x.jpg", ["cat"], data={"file_name": "a.jpg"}),
        task("/data/upload/1/x.jpg", ["dog"], data={"file_name": "day 1/c.jpg"}),
    ]
    assert labels(photos, write(tmp_path / "t.json", tasks))["day 1/c.jpg"] == "dog"


def two_questions() -> dict[str, Any]:
    asked = task("a.jpg", ["cat"], ["bright"])
    asked["annotations"][1]["result"][0]["from_name"] = "light"
    return asked


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ("no", r"t\.json is not JSON: .*Expected an export of Label Studio, or a \.csv file"),
        ({"a.jpg": "cat"}, r"contains no list of tasks\. Expected an export of Label Studio: JSON or JSON-MIN"),
        ([task("a.jpg", ["cat"], ["dog"])], r"says cat for a\.jpg in task 1 and dog in task 1\. Keep one of the two"),
        ([task("a.jpg", ["cat", "dog"])], r"has several choices for a\.jpg in task 1, expected one class each"),
        ([task("/data/local-files/?d=photos/../x.jpg", ["cat"])], r"in task 1, which is outside of"),
        ([{"data": {"text": "hello"}}], r"has no image in task 1; it has text\. .*--column file="),
        ([two_questions()], r"has the answers label, light in task 1\. Choose one with --column label="),
    ],
)
def test_exports_that_cannot_be_learned_from(photos, tmp_path, tasks, message):
    table = tmp_path / "t.json"
    table.write_text("no" if tasks == "no" else json.dumps(tasks))
    with pytest.raises(DataError, match=message):
        labels(photos, table)


def test_one_of_two_questions_can_be_named(photos, tmp_path):
    table = write(tmp_path / "t.json", [two_questions(), task("day 1/c.jpg", ["dog"])])
    assert labels(photos, table, Columns(label="label"))["a.jpg"] == "cat"


def test_rows_keep_their_text():
    text = '\ufefffile_name,label\r\n"a\nb",cat\r\r\n  \n"open'
    rows = csv_rows(text)
    assert "".join(row.raw for row in rows) == text
    assert [row.line for row in rows] == [1, 2, 4, 5, 6]
    assert [row.is_blank for row in rows] == [False, False, True, True, False]
    assert [is_open(row.raw) for row in rows] == [False, False, False, False, True]


@pytest.fixture
def flat(tmp_path) -> Path:
    """Photographs in one folder; the list of files does not open them."""
    (tmp_path / "photos" / "sub").mkdir(parents=True)
    for name in ("a.jpg", "b.jpg", "c.jpg", "sub/d.jpg"):
        (tmp_path / "photos" / name).touch()
    return tmp_path / "photos"


def table(root: Path, text: str | bytes) -> dict[str, str | None]:
    """File -> label, as a labels.csv with this text gives it."""
    (root / "labels.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return labels(root, None)


# labels.csv: the same meaning in many forms, and what has none

PLAIN = {"a.jpg": "cat", "b.jpg": "dog", "c.jpg": None, "sub/d.jpg": None}
SAME = {
    "twice": "file_name,label\na.jpg,cat\nb.jpg,dog\n./a.jpg,cat\n",
    "byte order mark": "\ufefffile_name,label\na.jpg,cat\nb.jpg,dog\n",
    "line ends of Windows": "file_name,label\r\na.jpg,cat\r\nb.jpg,dog",
    "line ends of old Macs": "file_name,label\ra.jpg,cat\rb.jpg,dog",
    "empty cells at the end": "file_name,label\na.jpg,cat,,\nb.jpg,dog,\n",
    "no label": "file_name,label\na.jpg,cat\nb.jpg,dog\nc.jpg,\nsub/d.jpg,Un-labelled\n",
    "no label cell": "file_name,label\na.jpg,cat\nb.jpg,dog\nc.jpg\n",
    "separators in a quoted name": 'file_name,label,"a;b;c;d"\na.jpg,cat\nb.jpg,dog\n',
    "a line of spaces": " \t\nfile_name;label\na.jpg;cat\nb.jpg;dog\n",
    "line ends of old Macs, and commas": "file_name;label;note\ra.jpg;cat;1,2,3\rb.jpg;dog;4,5,6",
    "blank lines": "\nfile_name,label\n\na.jpg,cat\n  \n,\nb.jpg,dog\n\n\n",
}
REFUSED = {
    "file_name,label\na.jpg,cat\nx.jpg,cat\nsub/a.jpg,dog\n": "names 2 files not in .*: x.jpg, sub/a.jpg",
    f"file_name,label\n{'long' * 1000}.jpg,cat\n": "names 1 file not in",
    "file_name,label\na.jpg,cat\n\na.jpg,dog\n": "says cat for a.jpg in line 2 and dog in line 4",
    "file_name,label\na.jpg,cat\na.jpg,\n": "and no label in line 3",
    'file_name,label\n"b\nc.jpg",cat\na.jpg,dog\na.jpg,cat\n': "in line 4 and cat in line 5|names 1 file not in",
    "file_name,label\na.jpg,cat\nx, y.jpg,dog\n": "3 cells in line 3",
    'file_name,label\na.jpg,"cat\nb.jpg,dog\nc.jpg,dog\n': "several lines in line 2",
    'file_name,label\na.jpg,"cat\n' + "b.jpg,dog\n" * 20_000: "cannot be read from line 2",
    "who,label\na.jpg,cat\n": "has the columns who, label",
    "who;label\na.jpg;cat\n": "has the columns who, label",
    "image,path,label\na.jpg,b.jpg,cat\n": "image, path could all be meant",
    "file_name,label,label\na.jpg,cat,dog\n": "label, label could all be meant",
    "a.jpg,cat\nb.jpg,dog\n": "has the columns a.jpg, cat",
    "file_name,label\n,cat\n": "no file name in line 2",
    "": "is empty",
    " , \n": "is empty",
    **{
        f"file_name,label\n{name},cat\n": "outside of"
        for name in (
            *("../x.jpg", "sub/../../x.jpg", "..\\x.jpg", '" ../x.jpg"', "\\x.jpg", "//x/a.jpg", "/a\0.jpg"),
            *("{above}/x.jpg", "{above}/photos-2/x.jpg", "{above}/photos/../x.jpg"),
        )
    },
}


@pytest.mark.parametrize("form", SAME)
def test_tables_of_one_meaning(flat: Path, form: str) -> None:
    assert table(flat, SAME[form]) == PLAIN


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_tables_that_are_refused(flat: Path, text: str) -> None:
    (flat.parent / "x.jpg").touch()
    with pytest.raises(DataError, match=REFUSED[text]):
        table(flat, text.replace("{above}", str(flat.parent)))


def test_tables_that_cannot_be_read(flat: Path) -> None:
    for content in ("file_name,label\na.jpg,café\n".encode("latin-1"), "file_name,label\n".encode("utf-16")):
        with pytest.raises(DataError, match="is not UTF-8"):
            table(flat, content)
    for place in ("other.csv", "sub"):
        with pytest.raises(DataError, match="cannot be read"):
            list_folder(flat, flat / place)
    (flat / "labels.csv").write_text("file_name,label\na.jpg,cat\nb.jpg,dgo\n")
    with pytest.raises(DataError, match=r"outside of the given classes: dgo"):
        list_folder(flat, classes=("dog", "cat"))


def test_odd_cells_are_names(flat: Path) -> None:
    for name in ("x, y.jpg", "line\nbreak.jpg", 'say "hi".jpg', " padded .jpg", "000123"):
        (flat / name).touch()
    found = table(
        flat,
        'id, label , file_name\n1,"cats, wild","x, y.jpg"\n2, dog ," line\nbreak.jpg"\n3,dog,"say ""hi"".jpg"\n'
        '4, "dog" , "a.jpg" \n5,dog," padded .jpg"\n6,"tabby\ncat",000123\n',
    )
    assert (found["x, y.jpg"], found["000123"]) == ("cats, wild", "tabby\ncat")
    for name in ("line\nbreak.jpg", 'say "hi".jpg', "a.jpg", " padded .jpg"):
        assert found[name] == "dog"
    (flat / "labels.csv").rename(flat.parent / "mine.csv")
    (flat / "labels.csv").write_text("file_name,label\n")  # its own table is not reported, even if another one is used
    assert list_folder(flat, flat.parent / "mine.csv").skipped == ()


@pytest.mark.parametrize(("on_disk", "in_table"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_accents(flat: Path, on_disk: Any, in_table: Any) -> None:
    stored = unicodedata.normalize(on_disk, "été.jpg")
    (flat / stored).touch()
    found = table(flat, f"file_name,label\n{unicodedata.normalize(in_table, 'été.jpg')},chat\na.jpg,dog\n")
    assert found[stored] == "chat"
    assert len(found) == 5

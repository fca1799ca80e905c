"""labels.csv: nothing that was answered is lost, nothing of somebody else's is changed."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from debiaspl.data import DataError
from debiaspl.data.file_names import FileNames
from debiaspl.data.label_table import Columns
from debiaspl.data.listing import list_folder
from debiaspl.data.text import means_no_label
from debiaspl.files import FileError, whole
from debiaspl.label.table import Table

FILES = ("a.jpg", "b.jpg", "c, d.jpg", "sub/e.jpg", "f.jpg")
CLASSES = ("owl", "heron", "owlet")


@pytest.fixture
def photos(tmp_path) -> Path:
    (tmp_path / "sub").mkdir()
    for file in FILES:
        (tmp_path / file).write_bytes(b"")
    return tmp_path


def opened(photos: Path, classes: tuple[str, ...] | None = CLASSES) -> Table:
    return Table(photos / "labels.csv", FileNames(photos, FILES), classes)


def write(photos: Path, text: str) -> None:
    (photos / "labels.csv").write_bytes(text.encode())


def read(photos: Path) -> str:
    return (photos / "labels.csv").read_bytes().decode()


def test_answers_are_rows_and_training_reads_them(photos):
    table = opened(photos)
    assert not (photos / "labels.csv").exists()
    table.answer("c, d.jpg", "heron")
    table.answer("sub/e.jpg", "owl", "random")
    table.answer("a.jpg", None)
    assert read(photos) == 'file_name,label,asked\n"c, d.jpg",heron,\nsub/e.jpg,owl,random\na.jpg,,\n'
    listing = list_folder(photos)
    named = {file: int(label) for file, label in zip(listing.files, listing.labels, strict=True)}
    assert listing.classes == ("heron", "owl")
    assert named == {"a.jpg": -1, "b.jpg": -1, "c, d.jpg": 0, "f.jpg": -1, "sub/e.jpg": 1}
    assert opened(photos).answers == table.answers == {"c, d.jpg": "heron", "sub/e.jpg": "owl", "a.jpg": None}


def test_undo_has_as_many_levels_as_there_are_rows_also_after_a_restart(photos):
    table = opened(photos)
    for file, label in (("a.jpg", "owl"), ("b.jpg", None), ("f.jpg", "heron")):
        table.answer(file, label)
    assert table.undo() == ("f.jpg", "heron")
    again = opened(photos)
    assert again.last == ("b.jpg", None)
    assert again.undo() == ("b.jpg", None)
    assert again.undo() == ("a.jpg", "owl")
    assert again.undo() is None
    assert read(photos) == "file_name,label,asked\n"


def test_the_last_answer_is_the_last_row_also_of_a_file_that_stands_twice(photos):
    write(photos, "file_name,label\na.jpg,owl\nb.jpg,heron\na.jpg,owl\n")
    assert opened(photos).undo() == ("a.jpg", "owl")
    assert read(photos) == "file_name,label\nb.jpg,heron\n"


def test_a_skipped_image_that_is_answered_later_has_one_row(photos):
    table = opened(photos)
    table.answer("a.jpg", None, "coverage")
    table.answer("b.jpg", "owl", "random")
    table.answer("a.jpg", "heron")  # it was asked for by coverage
    assert read(photos) == "file_name,label,asked\nb.jpg,owl,random\na.jpg,heron,coverage\n"
    assert table.undo() == ("a.jpg", "heron")


def test_what_others_wrote_keeps_every_byte(photos):
    before = '\ufeffLabel , file_name,who,note\r\nowl, "a.jpg" ,"me ""2""",\r\n\r\n heron,b.jpg\r\n'
    write(photos, before)
    table = opened(photos)
    table.answer("c, d.jpg", "owlet")
    assert read(photos) == before + 'owlet,"c, d.jpg",,\r\n'
    table.undo()
    assert read(photos) == before
    assert table.undo() == ("b.jpg", "heron")
    with pytest.raises(DataError, match=r'other columns too \(me "2"\), which would be lost'):
        table.undo()
    table.answer("a.jpg", "heron")
    assert read(photos).splitlines()[-1] == 'heron,a.jpg,"me ""2""",'


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_last_line_without_an_end_gets_one(photos, end):
    write(photos, f"file_name,label{end}a.jpg,owl")
    opened(photos).answer("f.jpg", "heron")
    assert read(photos) == f"file_name,label{end}a.jpg,owl{end}f.jpg,heron{end}"


@pytest.mark.parametrize("torn", ["b.jp", '"c, d.jp', "b.jpg,ow"])
def test_a_last_line_that_was_cut_off_is_refused(photos, torn):
    write(photos, f"file_name,label\na.jpg,owl\n{torn}")
    with pytest.raises(DataError):
        opened(photos)


@pytest.mark.parametrize("begun", ["", "\ufeff", "\n", "file_name,label,asked"])
def test_an_empty_table_is_a_new_one(photos, begun):
    write(photos, begun)
    opened(photos).answer("a.jpg", "owl", "coverage")
    assert read(photos) == "file_name,label,asked\na.jpg,owl,coverage\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file_name,label\na.jpg,eagle\nb.jpg,eagle\n", r"not among the classes .*owl, heron, owlet.*: eagle \(2\)"),
        ("file_name,label\n/etc/passwd,owl\n", "outside of"),
        ("file_name,label\na.jpg,owl\na.jpg,heron\n", "owl for a.jpg in line 2 and heron in line 3"),
        ('file_name,label\n"a.jpg,owl\nb.jpg,heron\n', "quote left open in line 2"),
    ],
)
def test_a_table_that_training_would_refuse_is_refused_and_stays(photos, text, message):
    write(photos, text)
    with pytest.raises(DataError, match=message):
        opened(photos)
    assert read(photos) == text


def test_a_table_that_somebody_changes_meanwhile_is_read_again(photos):
    table = opened(photos)
    table.answer("a.jpg", "owl")
    write(photos, read(photos) + "b.jpg,heron\n")
    table.answer("f.jpg", "owl", "random")
    assert read(photos) == "file_name,label,asked\na.jpg,owl,\nb.jpg,heron\nf.jpg,owl,random\n"
    write(photos, read(photos) + "sub/e.jpg,eagle\n")
    with pytest.raises(DataError, match="eagle"):
        table.answer("c, d.jpg", "owl")
    assert read(photos).endswith("sub/e.jpg,eagle\n")


def test_an_answer_that_cannot_be_written_does_not_count(photos, monkeypatch):
    table = opened(photos)
    table.answer("a.jpg", "owl")

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole, "_bring_to_disk", full)
    with pytest.raises(FileError, match="No space left"):
        table.answer("b.jpg", "heron")
    assert table.answers == {"a.jpg": "owl"}
    assert read(photos) == "file_name,label,asked\na.jpg,owl,\n"
    assert sorted(path.name for path in photos.iterdir() if path.name.startswith(".")) == []


def test_the_mode_and_a_link_stay(photos, tmp_path_factory):
    real = tmp_path_factory.mktemp("elsewhere") / "real.csv"
    real.write_text("file_name,label\n")
    real.chmod(0o600)
    (photos / "labels.csv").symlink_to(real)
    opened(photos).answer("a.jpg", "owl")
    assert (photos / "labels.csv").is_symlink()
    assert real.read_text() == "file_name,label\na.jpg,owl\n"
    assert real.stat().st_mode & 0o777 == 0o600


names = (
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
    .map(lambda text: unicodedata.normalize("NFC", text.strip()))
    .filter(lambda text: text and not means_no_label(text))
)


@given(labels=st.lists(names, min_size=2, max_size=4, unique=True))
@settings(max_examples=60, deadline=None)
def test_class_names_of_any_letters_survive(tmp_path_factory, labels):
    photos = tmp_path_factory.mktemp("any")
    files = tuple(f"{number}.jpg" for number in range(len(labels)))
    for file in files:
        (photos / file).write_bytes(b"")
    table = Table(photos / "labels.csv", FileNames(photos, files), labels)
    for file, label in zip(files, labels, strict=True):
        table.answer(file, label)
    assert list(Table(photos / "labels.csv", FileNames(photos, files), labels).answers.values()) == labels
    listing = list_folder(photos, classes=labels)
    assert [listing.classes[label] for label in listing.labels] == labels


@given(name=st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_file_names_of_any_letters_survive(tmp_path_factory, name):
    photos, file = tmp_path_factory.mktemp("any"), f"{name}.jpg"
    if name.strip().startswith(("\\", "..")) or ".." in name.replace("\\", "/").split("/"):
        return
    (photos / file).write_bytes(b"")
    Table(photos / "labels.csv", FileNames(photos, [file]), CLASSES).answer(file, "owl")
    assert Table(photos / "labels.csv", FileNames(photos, [file]), CLASSES).answers == {file: "owl"}
    if not name.startswith("."):  # hidden
        listing = list_folder(photos, classes=CLASSES)
        assert (listing.files, listing.labels.tolist()) == ((file,), [0])


def test_columns_of_other_names_are_read_and_written(photos):
    write(photos, "who,Kind,photo\nme,owl,a.jpg\n")
    table = Table(photos / "labels.csv", FileNames(photos, FILES), CLASSES, Columns("photo", "kind"))
    table.answer("c, d.jpg", "heron")
    assert read(photos) == 'who,Kind,photo\nme,owl,a.jpg\n,heron,"c, d.jpg"\n'
    assert table.options == ["--column", "file=photo", "--column", "label=kind"]
    (photos / "labels.csv").unlink()
    again = Table(photos / "labels.csv", FileNames(photos, FILES), CLASSES, Columns("photo", "kind"))
    again.answer("a.jpg", "owl")
    assert read(photos) == "photo,kind,asked\na.jpg,owl,\n"
    assert 0 in list_folder(photos, classes=CLASSES, columns=Columns("photo", "kind")).labels
    with pytest.raises(DataError, match="has the columns photo, kind"):
        opened(photos)


def test_answers_do_not_go_into_json(photos):
    with pytest.raises(DataError, match=r"answers go into a CSV file, and .*labels\.json is JSON.*--out"):
        Table(photos / "labels.json", FileNames(photos, FILES), CLASSES)


@pytest.mark.parametrize("text", ["image;class\r\na.jpg;owl\r\n", "photo\tlabel\r\na.jpg\towl\r\n"])
def test_a_table_of_another_form_keeps_it(photos, text):
    (photos / "labels.csv").write_bytes(text.encode())
    table = Table(photos / "labels.csv", FileNames(photos, FILES), CLASSES)
    assert table.answers == {"a.jpg": "owl"}
    other = next(file for file in FILES if file != "a.jpg")
    table.answer(other, "owl")
    row = f"{other}{';' if ';' in text else chr(9)}owl\r\n"
    assert (photos / "labels.csv").read_bytes().decode() == text + row
    assert Table(photos / "labels.csv", FileNames(photos, FILES), CLASSES).answers == {"a.jpg": "owl", other: "owl"}

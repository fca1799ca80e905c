"""``debiaspl train FOLDER``: what is refused, in which words, and with nothing left behind."""

import shutil

import pytest

pytest.importorskip("transformers")

from debiaspl.photos.survey import survey
from tests.data.photos import write_photos
from tests.typed import done, refused

TABLES = {
    "no image of PHOTOS has a label yet": "",
    "labels of one class only: owl": "00.jpg,owl\n01.jpg,owl\n",
    "not in PHOTOS: 99.jpg": "00.jpg,owl\n99.jpg,heron\n",
    "classes that name several classes: 'owl,heron' (1). ": '00.jpg,owl\n01.jpg,heron\n02.jpg,"owl,heron"\n',
    "classes that mean no label yet: 'To do' (1). ": "00.jpg,owl\n01.jpg,heron\n02.jpg,To do\n",
    "says owl for 00.jpg in line 2 and heron in line 4": "00.jpg,owl\n01.jpg,heron\n00.jpg,heron\n",
}
"""What is said -> the rows of the table."""


def said_of(root):
    """What is said; no run is begun."""
    where = root / "photos", "--labels", root / "labels.csv", "--device", "cpu", "--out", root / "run"
    told = refused("train", *where)
    assert told.startswith("error: ")
    assert not (root / "run").exists()
    return told.replace(str(root / "photos"), "PHOTOS")


@pytest.mark.parametrize("words", TABLES)
def test_bad_tables(words, place, tmp_path):
    shutil.copytree(place / "photos", tmp_path / "photos")
    (tmp_path / "labels.csv").write_text(f"file_name,label\n{TABLES[words]}")
    assert words in said_of(tmp_path)


def test_bad_folders(place, tmp_path):
    shutil.copytree(place / "photos", tmp_path / "photos")
    assert "labels.csv cannot be read" in said_of(tmp_path)
    (tmp_path / "labels.csv").write_text("file_name,label\n00.jpg,owl\n01.jpg,heron\n")
    photos = sorted((tmp_path / "photos").iterdir())
    for path in photos:
        path.write_bytes(b"not a photo")
    assert "of PHOTOS that were tried can be read" in said_of(tmp_path)
    for path in photos[2:]:
        path.unlink()
    assert "PHOTOS holds 2 images, expected 10 or more" in said_of(tmp_path)
    shutil.rmtree(tmp_path / "photos")
    assert "PHOTOS does not exist" in said_of(tmp_path)


def test_neither_photos_nor_recipe_and_both(place):
    for arguments in (
        [],
        [place / "photos", "--recipe", "digits-10"],
        ["--recipe", "digits-10", "--encoder", "x"],
        ["--recipe", "digits-10", "--allow-names"],
    ):
        assert ("expected a folder of photos" if not arguments else "leave out") in refused("train", *arguments)


def test_a_bad_encoder_leaves_nothing(place, tmp_path):
    where = place / "photos", "--labels", place / "labels.csv", "--out", tmp_path / "run", "--device", "cpu"
    assert "config.json" in refused("train", *where, "--encoder", tmp_path / "none")
    assert not (tmp_path / "run").exists()


def test_classes_that_differ_in_capitals_or_spaces_alone_are_refused_unless_allowed(place, tmp_path):
    names = ["Owl", "Owl", "owl ", "grey  owl", "grey owl", "Unlabeled"]
    table, out = tmp_path / "labels.csv", tmp_path / "run"
    table.write_text("file_name,label\n" + "".join(f"{number:02d}.jpg,{name}\n" for number, name in enumerate(names)))
    asked = "train", place / "photos", "--labels", table, "--device", "cpu", "--out", out, "--set", "steps=1"
    assert "'grey  owl' (1), 'grey owl' (1), 'Owl' (2), 'owl' (1). " in refused(*asked)
    assert not out.exists()
    allowed = done(*asked, "--allow-names")
    assert "30 images, 5 labels, 4 classes; rarest: grey  owl (1).\nClasses: Owl 2, grey  owl 1" in allowed


def in_folders(root, *names):
    return write_photos(root, [f"{name}/{number:02d}.jpg" for number, name in enumerate(names)])


def test_folders_that_may_be_no_class(tmp_path):
    photos = in_folders(tmp_path / "photos", *["owl"] * 3, *["heron"] * 3, *["Unlabelled"] * 3, *["rest"] * 3)
    with pytest.raises(ValueError, match=r"'rest' \(3\)\. .*photos/unlabeled.*--allow"):
        survey(photos, None)
    assert survey(photos, None, allow_names=True).classes == ("heron", "owl", "rest")


def test_class_folders_beside_a_table_are_asked_about(tmp_path):
    photos = in_folders(tmp_path / "photos", *["owl"] * 4, *["heron"] * 4, *["day 1"] * 4)
    (tmp_path / "t.csv").write_text("file_name,label\nowl/00.jpg,\nday 1/08.jpg,owl\nday 1/09.jpg,heron\n")
    with pytest.raises(ValueError, match=r"no label to 7 photos in folders .*: heron, owl\. .*--folders use.*folders="):
        survey(photos, tmp_path / "t.csv")
    both = survey(photos, tmp_path / "t.csv", folders="use")
    assert both.classes == ("day 1", "heron", "owl")
    assert (both.counts, both.unlabeled) == ([2, 5, 4], 1)
    assert both.protocol["folders"] is True
    with pytest.raises(ValueError, match="folders is 'maybe', expected use or ignore"):
        survey(photos, tmp_path / "t.csv", folders="maybe")
    assert survey(photos, tmp_path / "t.csv", folders="ignore").unlabeled == 10
    for command in ("train", "compare"):
        asked = photos, "--labels", tmp_path / "t.csv", "--out", tmp_path / "run"
        assert "no label to 7 photos in folders named like its classes" in refused(command, *asked)


def test_two_tables_are_refused(place, tmp_path):
    for command in ("train", "compare"):
        asked = "--labels", "a.csv", "--labels", "b.csv", "--out", tmp_path / "run"
        assert "--labels is given twice" in refused(command, place / "photos", *asked)


def test_a_first_classifier_of_random_features_is_refused_before_anything_is_written(place, tmp_path):
    asked = place / "photos", "--labels", place / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    assert "the network starts with random weights" in refused("train", *asked, "--set", "first_classifier=graph")
    assert not (tmp_path / "run").exists()

"""``debiaspl train FOLDER``: what is refused, in which words, and with nothing left behind."""

import shutil

import pytest

pytest.importorskip("transformers")

from debiaspl.photos.survey import survey
from tests.data.photos import jpeg, patch
from tests.photos.user import SIDE, debiaspl

TABLES = {
    "no image of PHOTOS has a label yet": "",
    "labels of one class only: owl": "00.jpg,owl\n01.jpg,owl\n",
    "not in PHOTOS: 99.jpg": "00.jpg,owl\n99.jpg,heron\n",
    "has 'owl,heron' (1 photo) as well as heron, owl": '00.jpg,owl\n01.jpg,heron\n02.jpg,"owl,heron"\n',
    "has the class 'To do' (1 photo)": "00.jpg,owl\n01.jpg,heron\n02.jpg,To do\n",
    "says owl for 00.jpg in line 2 and heron in line 4": "00.jpg,owl\n01.jpg,heron\n00.jpg,heron\n",
}
"""What is said -> the rows of the table."""


def refused(root):
    """What is said; no run is begun."""
    out = root / "run"
    where = root / "photos", "--labels", root / "labels.csv", "--device", "cpu", "--out", out
    ran = debiaspl("train", *where)
    assert ran.exit_code == 1
    assert ran.output.startswith("error: ")
    assert not out.exists()
    return ran.output.replace(str(root / "photos"), "PHOTOS")


@pytest.mark.parametrize("words", TABLES)
def test_bad_tables(words, place, tmp_path):
    shutil.copytree(place / "photos", tmp_path / "photos")
    (tmp_path / "labels.csv").write_text(f"file_name,label\n{TABLES[words]}")
    assert words in refused(tmp_path)


def test_bad_folders(place, tmp_path):
    shutil.copytree(place / "photos", tmp_path / "photos")
    assert "labels.csv cannot be read" in refused(tmp_path)
    (tmp_path / "labels.csv").write_text("file_name,label\n00.jpg,owl\n01.jpg,heron\n")
    photos = sorted((tmp_path / "photos").iterdir())
    for path in photos:
        path.write_bytes(b"not a photo")
    assert "of PHOTOS that were tried can be read" in refused(tmp_path)
    for path in photos[2:]:
        path.unlink()
    assert "PHOTOS holds 2 images, expected 10 or more" in refused(tmp_path)
    shutil.rmtree(tmp_path / "photos")
    assert "PHOTOS does not exist" in refused(tmp_path)


def test_an_empty_folder_without_a_table(tmp_path):
    ran = debiaspl("train", tmp_path, "--out", tmp_path / "run")
    assert ran.exit_code == 1
    assert "contains no image and no other file. Images end in .jpg" in ran.output


def test_neither_photos_nor_recipe_and_both(place):
    for arguments in (
        [],
        [place / "photos", "--recipe", "digits-10"],
        ["--recipe", "digits-10", "--encoder", "x"],
        ["--recipe", "digits-10", "--allow-names"],
    ):
        ran = debiaspl("train", *arguments)
        assert ran.exit_code == 1
        assert ("expected a folder of photos" if not arguments else "leave out") in ran.output


def test_a_bad_encoder_leaves_nothing(place, tmp_path):
    where = place / "photos", "--labels", place / "labels.csv", "--out", tmp_path / "run", "--device", "cpu"
    ran = debiaspl("train", *where, "--encoder", tmp_path / "none")
    assert ran.exit_code == 1
    assert "none does not exist" in ran.output
    assert not (tmp_path / "run").exists()


def test_classes_that_differ_in_capitals_or_spaces_alone_are_refused_unless_allowed(place, tmp_path):
    names = ["Owl", "Owl", "owl ", "grey  owl", "grey owl", "Unlabeled"]
    table, out = tmp_path / "labels.csv", tmp_path / "run"
    table.write_text("file_name,label\n" + "".join(f"{number:02d}.jpg,{name}\n" for number, name in enumerate(names)))
    asked = "train", place / "photos", "--labels", table, "--device", "cpu", "--out", out, "--set", "steps=1"
    ran = debiaspl(*asked)
    assert ran.exit_code == 1
    assert "'Owl' (2 photos) and 'owl' (1 photo); 'grey  owl' (1 photo) and 'grey owl' (1 photo)." in ran.output
    assert not out.exists()
    allowed = debiaspl(*asked, "--allow-names")
    assert allowed.exit_code == 0, allowed.output
    assert "30 images, 5 labels, 4 classes; rarest: grey  owl (1).\nClasses: Owl 2, grey  owl 1" in allowed.output


def test_class_folders_that_are_alike_are_moved_together(tmp_path):
    for number, name in enumerate(["Owl"] * 5 + ["owl"] * 3 + ["heron"] * 4):
        (tmp_path / "photos" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / name / f"{number}.jpg").write_bytes(jpeg(patch(0, number, SIDE)))
    ran = debiaspl("train", tmp_path / "photos", "--device", "cpu", "--out", tmp_path / "run")
    assert "'Owl' (5 photos) and 'owl' (3 photos). If they are one, move the photos of one folder" in ran.output
    assert not (tmp_path / "run").exists()


def in_folders(root, *names):
    for number, name in enumerate(names):
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / f"{number:02d}.jpg").write_bytes(jpeg(patch(0, number, SIDE)))
    return root


def test_folders_that_may_be_no_class(tmp_path, caplog):
    photos = in_folders(tmp_path / "photos", *["owl"] * 3, *["heron"] * 3, *["Unlabelled"] * 3, *["rest"] * 3)
    with pytest.raises(ValueError, match=r"'rest' \(3 photos\)\. .* rename the folder to .*photos/unlabeled.*--allow"):
        survey(photos, None)
    assert "Unlabelled/ contains photos without a label." in caplog.text
    assert survey(photos, None, allow_names=True).classes == ("heron", "owl", "rest")


def test_class_folders_beside_a_table_are_asked_about(tmp_path):
    photos = in_folders(tmp_path / "photos", *["owl"] * 4, *["heron"] * 4, *["day 1"] * 4)
    (tmp_path / "t.csv").write_text("file_name,label\nowl/00.jpg,\nday 1/08.jpg,owl\nday 1/09.jpg,heron\n")
    with pytest.raises(
        ValueError, match=r"no label to 7 photos in folders .* like its classes: heron, owl\. .*--folders use"
    ):
        survey(photos, tmp_path / "t.csv")
    both = survey(photos, tmp_path / "t.csv", folders="use")
    assert both.classes == ("day 1", "heron", "owl")
    assert (both.counts, both.unlabeled) == ([2, 5, 4], 1)
    assert both.protocol["folders"] is True
    ran = debiaspl("train", photos, "--labels", tmp_path / "t.csv", "--folders", "maybe", "--out", tmp_path / "run")
    assert ran.output == "error: folders is 'maybe', expected use or ignore.\n"
    assert survey(photos, tmp_path / "t.csv", folders="ignore").unlabeled == 10
    ran = debiaspl("compare", photos, "--labels", tmp_path / "t.csv", "--out", tmp_path / "run")
    assert "no label to 7 photos in folders named like its classes" in ran.output


def test_two_tables_are_refused(place, tmp_path):
    for command in ("train", "compare"):
        ran = debiaspl(command, place / "photos", "--labels", "a.csv", "--labels", "b.csv", "--out", tmp_path / "run")
        assert ran.output.startswith("error: --labels is given twice. Expected one table")


def test_a_first_classifier_of_random_features_is_refused_before_anything_is_written(place, tmp_path):
    asked = place / "photos", "--labels", place / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    ran = debiaspl("train", *asked, "--set", "first_classifier=graph")
    assert ran.exit_code != 0
    assert "the network starts with random weights" in ran.output
    assert not (tmp_path / "run").exists()

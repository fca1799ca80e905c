"""``debiaspl train FOLDER``: what is refused, in which words, and with nothing left behind."""

import shutil

import pytest

pytest.importorskip("transformers")

from debiaspl.photos import duration
from debiaspl.photos.names import Allowed, alike, refuse_doubtful, refuse_passed_over
from debiaspl.photos.survey import survey
from tests.data.photos import jpeg, patch
from tests.photos.user import SIDE, debiaspl


def bad(change):
    """A row of the table of bad inputs: what is done to the folder, and what is said."""

    def case(words):
        return pytest.param(change, words, id=change.__name__)

    return case


def no_labels(root):
    (root / "labels.csv").write_text("file_name,label\n")


def one_class(root):
    (root / "labels.csv").write_text("file_name,label\n00.jpg,owl\n01.jpg,owl\n")


def a_label_for_a_missing_file(root):
    (root / "labels.csv").write_text("file_name,label\n00.jpg,owl\n99.jpg,heron\n")


def two_images(root):
    for path in sorted((root / "photos").iterdir())[2:]:
        path.unlink()
    (root / "labels.csv").write_text("file_name,label\n00.jpg,owl\n01.jpg,heron\n")


def an_empty_folder(root):
    for path in (root / "photos").iterdir():
        path.unlink()


def odd_columns(root):
    (root / "labels.csv").write_text("a,b,c\n00.jpg,owl,1\n01.jpg,heron,2\n")


def two_classes_for_a_photo(root):
    (root / "labels.csv").write_text('file_name,label\n00.jpg,owl\n01.jpg,heron\n02.jpg,"owl,heron"\n')


def photos_that_wait(root):
    (root / "labels.csv").write_text("file_name,label\n00.jpg,owl\n01.jpg,heron\n02.jpg,To do\n")


def contradictory_rows(root):
    (root / "labels.csv").write_text("file_name,label\n00.jpg,owl\n01.jpg,heron\n00.jpg,heron\n")


def no_table(root):
    (root / "labels.csv").unlink()


def no_folder(root):
    shutil.rmtree(root / "photos")


def nothing_readable(root):
    for path in (root / "photos").iterdir():
        path.write_bytes(b"not a photo")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        bad(no_labels)("no image of PHOTOS has a label yet. Expected labels of two classes or more. Label a few"),
        bad(one_class)("PHOTOS has labels of one class only: owl. Expected two classes or more: label a few images"),
        bad(a_label_for_a_missing_file)("names 1 file not in PHOTOS: 99.jpg. Paths are relative to PHOTOS"),
        bad(two_images)("PHOTOS holds 2 images, expected 10 or more. Add photos without a label too"),
        bad(an_empty_folder)("names 6 files not in PHOTOS"),
        bad(odd_columns)("has the columns a, b, c. Expected a first line with file_name and label"),
        bad(two_classes_for_a_photo)(
            "labels.csv has 'owl,heron' (1 photo) as well as heron, owl. If that means several"
        ),
        bad(photos_that_wait)(
            "has the class 'To do' (1 photo). If these photos have no label yet, leave the label empty"
        ),
        bad(contradictory_rows)("says owl for 00.jpg in line 2 and heron in line 4. Keep one of the two."),
        bad(no_table)("labels.csv cannot be read: No such file or directory"),
        bad(no_folder)("PHOTOS does not exist. Expected a folder of images."),
        bad(nothing_readable)("of PHOTOS that were tried can be read"),
    ],
)
def test_bad_input(change, words, place, tmp_path):
    shutil.copytree(place / "photos", tmp_path / "photos")
    shutil.copy(place / "labels.csv", tmp_path)
    change(tmp_path)
    where = tmp_path / "photos", "--labels", tmp_path / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    ran = debiaspl("train", *where)
    assert ran.exit_code == 1
    assert ran.output.startswith("error: ")
    assert words.replace("PHOTOS", str(tmp_path / "photos")) in ran.output
    assert not (tmp_path / "run").exists()


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
    assert "does not exist, expected a folder, or a name on the hub" in ran.output
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("classes", "groups"),
    [
        (("Owl", "owl", "heron"), [["Owl", "owl"]]),
        (("grey  owl", "grey owl", "Grey owl "), [["grey  owl", "grey owl", "Grey owl "]]),
        (("Straße", "STRASSE", "a", "A"), [["Straße", "STRASSE"], ["a", "A"]]),
        (("owl", "owls", "grey owl", "greyowl"), []),
    ],
)
def test_names_that_are_alike(classes, groups):
    assert alike(classes) == groups


def test_classes_that_differ_in_capitals_or_spaces_alone_are_refused_unless_allowed(place, tmp_path, monkeypatch):
    monkeypatch.setattr(duration, "estimate", lambda *_: 1.0)
    names = ["Owl", "Owl", "owl ", "grey  owl", "grey owl", "Unlabeled"]
    table, out = tmp_path / "labels.csv", tmp_path / "run"
    table.write_text("file_name,label\n" + "".join(f"{number:02d}.jpg,{name}\n" for number, name in enumerate(names)))
    asked = "train", place / "photos", "--labels", table, "--device", "cpu", "--out", out, "--set", "steps=1"
    ran = debiaspl(*asked)
    assert ran.exit_code == 1
    assert ran.output == (
        f"error: {table} has class names that differ only in capital letters or spaces: 'Owl' (2 photos) and 'owl' (1 "
        "photo); 'grey  owl' (1 photo) and 'grey owl' (1 photo). Each would be learned as a class of its own. If they "
        "are one, write: 'Owl' instead of 'owl', 'grey owl' instead of 'grey  owl'. If they are not, allow it: "
        "--allow-names.\n"
    )
    assert not out.exists()
    allowed = debiaspl(*asked, "--allow-names")
    assert allowed.exit_code == 0, allowed.output
    assert "30 images, 5 labels, 4 classes; rarest: grey  owl (1).\nClasses: Owl 2, grey  owl 1" in allowed.output


def test_class_folders_that_are_alike_are_moved_together(tmp_path):
    for number, name in enumerate(["Owl"] * 5 + ["owl"] * 3 + ["heron"] * 4):
        (tmp_path / "photos" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / name / f"{number}.jpg").write_bytes(jpeg(patch(0, number, SIDE)))
    ran = debiaspl("train", tmp_path / "photos", "--device", "cpu", "--out", tmp_path / "run")
    assert (
        "'Owl' (5 photos) and 'owl' (3 photos). Each would be learned as a class of its own. If they are one, move "
        "photos from one folder to the other and remove the empty one: 'owl' to 'Owl'. If they are not"
    ) in ran.output
    assert not (tmp_path / "run").exists()


def in_folders(root, *names):
    for number, name in enumerate(names):
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / f"{number:02d}.jpg").write_bytes(jpeg(patch(0, number, SIDE)))
    return root


def test_folders_that_may_be_no_class(tmp_path, caplog):
    photos = in_folders(tmp_path / "photos", *["owl"] * 3, *["heron"] * 3, *["Unlabelled"] * 3, *["rest"] * 3)
    found = survey(photos, None)
    assert found.classes == ("heron", "owl", "rest")
    assert "Unlabelled/ contains photos without a label." in caplog.text
    words = r"has the class 'rest' \(3 photos\)\. .* rename the folder to .*photos/unlabeled; .*--allow-names"
    with pytest.raises(ValueError, match=words):
        refuse_doubtful(found)
    Allowed(True).check(found)


def test_class_folders_beside_a_table_are_asked_about(tmp_path):
    photos = in_folders(tmp_path / "photos", *["owl"] * 4, *["heron"] * 4, *["day 1"] * 4)
    (tmp_path / "t.csv").write_text("file_name,label\nowl/00.jpg,\nday 1/08.jpg,owl\nday 1/09.jpg,heron\n")
    found = survey(photos, tmp_path / "t.csv")
    with pytest.raises(
        ValueError, match=r"no label to 7 photos in folders .* like its classes: heron, owl\. .*--folders use"
    ):
        refuse_passed_over(found)
    both = survey(photos, tmp_path / "t.csv", folders=True)
    refuse_passed_over(both)
    assert both.classes == ("day 1", "heron", "owl")
    assert (both.counts, both.unlabeled) == ([2, 5, 4], 1)
    assert both.protocol["folders"] is True
    ran = debiaspl("train", photos, "--labels", tmp_path / "t.csv", "--folders", "maybe", "--out", tmp_path / "run")
    assert ran.output == "error: --folders is 'maybe', expected use or ignore.\n"
    Allowed(True, "ignore").check(found)
    ran = debiaspl("compare", photos, "--labels", tmp_path / "t.csv", "--out", tmp_path / "run")
    assert "no label to 7 photos in folders named like its classes" in ran.output


def test_two_tables_are_refused(place, tmp_path):
    for command in ("train", "compare"):
        ran = debiaspl(command, place / "photos", "--labels", "a.csv", "--labels", "b.csv", "--out", tmp_path / "run")
        assert ran.output.startswith("error: --labels is given 2 times: a.csv and b.csv. Expected one table")


def test_a_first_classifier_of_random_features_is_refused_before_anything_is_written(place, tmp_path):
    asked = place / "photos", "--labels", place / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    ran = debiaspl("train", *asked, "--set", "first_classifier=graph")
    assert ran.exit_code != 0
    assert "the network starts with random weights" in ran.output
    assert not (tmp_path / "run").exists()

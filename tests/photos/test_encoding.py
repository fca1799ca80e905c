"""Features that are kept before there is a run."""

import csv

import pytest

from debiaspl.data.listing import list_images
from debiaspl.deploy.labeled import labeled_files
from debiaspl.features import choose
from debiaspl.photos.encoding import FOLDER, PhotoEncoding
from tests.data.photos import write_folder
from tests.typed import done, refused


def test_the_first_labels_are_chosen_without_a_run_and_train_finds_their_features(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    photos, encoder = place / "photos", place / "encoder"
    said = done("next", photos, "--encoder", encoder, "--count", 5, "--page", "next.html")
    assert f"Features are in {FOLDER}" in said.replace("\n", " ")
    with open("next.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["asked"] for row in rows] == ["coverage"] * 5
    assert {row["label"] + row["predicted"] + row["confidence"] for row in rows} == {""}
    listing = list_images(photos)
    _, pool, skipped = PhotoEncoding(listing, str(encoder), "cpu").pool(range(len(listing.files)), lambda *done: None)
    assert skipped == {}
    assert [row["file_name"] for row in rows] == [listing.files[row] for row in choose(pool.features, 5)]

    before = {path: path.stat().st_mtime_ns for path in FOLDER.rglob("*")}
    done("train", photos, "--labels", place / "labels.csv", "--encoder", encoder, "--device", "cpu")
    assert {path: path.stat().st_mtime_ns for path in FOLDER.rglob("*")} == before

    labeled = done("next", photos, "--encoder", encoder, "--labels", place / "labels.csv", "--out", "more.csv")
    assert "6 with a label left out" in labeled.replace("\n", " ")


@pytest.mark.parametrize("options", [("--encoder", "none"), ("photos", "--encoder", "efficientnet-lite0")])
def test_a_run_or_an_encoder(place, options):
    assert "--encoder" in refused("next", place / "photos", *options)


def test_class_folders_are_labels_if_something_is_left(tmp_path):
    photos = write_folder(tmp_path / "photos", per_class=2)
    files = list_images(photos).files
    assert labeled_files(None, photos, files) == {}
    (photos / "unlabeled").mkdir()
    (photos / files[0]).rename(photos / "unlabeled" / "new.jpg")
    assert set(labeled_files(None, photos, list_images(photos).files)) == set(files[1:])

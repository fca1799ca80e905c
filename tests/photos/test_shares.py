"""A folder with many photos of one class: its shares are estimated, saved and, when the model is used, chosen."""

import csv
from collections import Counter

import numpy as np
import pytest
import torch
from PIL import Image

pytest.importorskip("transformers")

from debiaspl.deploy import load_model
from debiaspl.deploy.shares import SavedShares
from debiaspl.features import fit
from tests.data.photos import jpeg
from tests.photos.user import CLASSES, SIDE
from tests.typed import debiaspl, done, refused, results_of, rows_of

COUNTS = 70, 14
LABELED = 7


def coloured(kind, number):
    """A picture that is more red or more blue, under noise."""
    random = np.random.default_rng(number)
    pixels = random.integers(0, 140, (SIDE, SIDE, 3))
    pixels[..., 2 * kind] += random.integers(30, 110)
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.fixture(scope="module")
def uneven(place, tmp_path_factory):
    """Photos with noise over them, as many labels of each class, and how each was asked for."""
    root = tmp_path_factory.mktemp("uneven")
    (root / "photos").mkdir()
    rows, number = [("file_name", "label", "asked")], 0
    for kind, count in enumerate(COUNTS):
        for own in range(count):
            name = f"{kind}{own:02d}.jpg"
            (root / "photos" / name).write_bytes(jpeg(coloured(kind, number)))
            number += 1
            if own < LABELED:
                rows.append((name, CLASSES[kind], "uncertainty"))
    with (root / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    for aim in ("photos", "classes"):
        where = "--labels", root / "labels.csv", "--encoder", place / "encoder", "--device", "cpu"
        ran = done(
            "train", root / "photos", *where, "--out", root / "runs" / aim, "--set", "steps=40", "--optimise", aim
        )
        (root / f"{aim}.txt").write_text(ran)
    return root


def test_shares_are_estimated_shown_and_saved(uneven):
    results = results_of(uneven / "runs" / "photos")
    shares = results["shares"]
    assert results["recipe"]["optimise"] == shares["optimise"] == "photos"
    assert shares["labels"] == [0.5, 0.5]
    assert sum(shares["estimate"]) == pytest.approx(1)
    assert shares["low"][0] <= shares["estimate"][0] <= shares["high"][0]
    assert sum(shares["counts"]) == sum(COUNTS)
    assert shares["estimate"][0] > 0.7
    assert shares["weight"] > 0
    assert "Estimated shares" in (uneven / "photos.txt").read_text()
    assert "mean over classes" in (uneven / "classes.txt").read_text()
    assert load_model(uneven / "runs" / "photos").shares.used == "run"
    assert load_model(uneven / "runs" / "classes").shares.used == "even"
    assert results["calibration"]["error"] <= 1


def test_the_model_is_the_fit_of_its_features(uneven, place):
    from debiaspl.data import GivenLabels
    from debiaspl.encoders import features_of

    network = load_model(uneven / "runs" / "photos").network
    images = GivenLabels(table=str(uneven / "labels.csv")).read(str(uneven / "photos"), SIDE, stream=True)
    kept = features_of(images, network.encoder, uneven / ".features").values
    asked = ["uncertainty" if label >= 0 else "" for label in images.labels.tolist()]
    fitted = fit(kept, images.labels, 2, steps=40, seed=0, unit=True, device=torch.device("cpu"), asked=asked)
    assert torch.equal(fitted.network.head.weight, network.head.weight)
    assert torch.equal(fitted.network.head.bias, network.head.bias)


def predicted(uneven, run, *more):
    ran = done("predict", uneven / "runs" / run, uneven / "photos", "--out", uneven / "p.csv", "--overwrite", *more)
    return Counter(row["label"] for row in rows_of(uneven / "p.csv")), ran


@pytest.mark.slow
def test_a_user_chooses_the_shares_of_predictions_and_of_exports(uneven):
    run, said = predicted(uneven, "photos")
    assert "other class shares" not in said
    assert predicted(uneven, "photos", "--shares", "run")[0] == run
    even, _ = predicted(uneven, "photos", "--shares", "even")
    folder, _ = predicted(uneven, "photos", "--shares", "folder")
    assert even[CLASSES[0]] <= run[CLASSES[0]]
    assert folder[CLASSES[0]] >= even[CLASSES[0]]
    assert predicted(uneven, "classes")[0] == even
    where = uneven / "runs" / "photos", uneven / "photos"
    assert "--shares" in refused("predict", *where, "--out", uneven / "q.csv", "--shares", "most")
    refused("predict", uneven / "runs" / "photos", uneven / "photos" / "000.jpg", "--shares", "folder")
    pytest.importorskip("onnxscript")
    assert "even class shares" in done("export", where[0], uneven / "even.onnx", "--shares", "even")
    refused("export", where[0], uneven / "folder.onnx", "--shares", "folder")


def test_other_shares_are_noticed(uneven, tmp_path):
    (tmp_path / "photos").mkdir()
    for number in range(60):
        (tmp_path / "photos" / f"{number}.jpg").write_bytes(jpeg(coloured(1, 1000 + number)))
    ran = debiaspl("predict", uneven / "runs" / "photos", tmp_path / "photos", "--out", tmp_path / "p.csv")
    assert "other class shares" in ran.output


def test_a_run_without_shares_says_so(trained, place, uneven):
    model = load_model(trained[1])
    assert model.shares is not None, "even ones"
    assert model.shares.run.weight == 0
    supervised = place / "runs" / "alone"
    where = "--labels", place / "labels.csv", "--encoder", place / "encoder", "--device", "cpu"
    done("train", place / "photos", *where, "--out", supervised, "--set", "steps=40", "--method", "supervised")
    assert "shares" in refused("predict", supervised, place / "photos", "--out", place / "p.csv", "--shares", "even")


@pytest.mark.parametrize(
    "change",
    [
        {"estimate": [0.5]},
        {"estimate": [1.0, 0.0]},
        {"error": [float("nan"), 0.1]},
        {"weight": 3},
        {"temperature": 0},
        {"optimise": "speed"},
        {"counts": "many"},
    ],
)
def test_damaged_shares_are_refused(change):
    good = {"estimate": [0.7, 0.3], "error": [0.1, 0.1], "counts": [7, 3], "weight": 0.5, "temperature": 2.0}
    good["optimise"] = "photos"
    assert SavedShares.of(good, 2).used == "run"
    with pytest.raises(ValueError, match="damaged"):
        SavedShares.of({**good, **change}, 2)


def test_a_network_that_learns_its_features_has_no_such_choice(place):
    where = place / "photos", "--labels", place / "labels.csv"
    assert "optimise" in refused("train", *where, "--encoder", "none", "--optimise", "classes")

"""``debiaspl train FOLDER --encoder``: each photo is encoded once, and one run folder is written."""

import json
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import debiaspl as package
from debiaspl.data import lazy
from debiaspl.data.decode import decode
from debiaspl.deploy import load_model
from debiaspl.encoders import encoder as encoder_module, encoding, load_encoder, network
from debiaspl.features import fit
from debiaspl.photos import frozen
from debiaspl.photos.choose import choose_with_start
from debiaspl.photos.survey import survey
from tests.data.photos import jpeg, patch, write_labels
from tests.photos.user import CLASSES, asked
from tests.test_docs import PAGES
from tests.typed import debiaspl, done, refused, results_of, rows_of

ON_A_GPU = (pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"))
METHODS = ["supervised", "graph", "debiaspl"]


def test_what_is_said(trained):
    ran, out = trained
    said = ran.splitlines()
    assert said[0] == "30 images, 6 labels, 2 classes; 3 of each."
    assert said[1] == "Classes: 'china, old' 3, flower 3."
    plain = " ".join(said[2:5])
    assert "Encoder, frozen, at 32 x 32 pixels (photos of 24 are enlarged; faster and less accurate:" in plain
    assert "6 labels are cross-checked in 3 folds." in plain
    assert [line.split()[0] for line in said if line.split()[0] in METHODS] == METHODS
    assert "Each of 6 labels was predicted by one of 3 models that did not learn from it." in ran
    assert "predict, next and export use this model: debiaspl." in ran
    assert said[-1].endswith(str(out / "report.html"))


def test_there_is_one_run_folder(trained, place):
    out = trained[1]
    files = {"config.json", "model.safetensors", "predictions.csv", "report.html", "results.json"}
    assert {path.name for path in out.iterdir() if path.name != ".lock"} == files
    results = results_of(out)
    assert [key for key in results if f"`{key}`" not in PAGES["docs/reference/files.md"]] == []
    check = results["check"]
    assert check.items() >= {"kind": "cross-check", "folds": 3, "labels": 6}.items()
    assert results["test"] == 6 == len(check["right"]) + len(check["mistakes"])
    assert [one["name"] for one in check["candidates"]] == METHODS
    assert [one["chosen"] for one in check["candidates"]] == [False, False, True]
    assert check["candidates"][-1]["confusion"] == results["confusion"]
    assert (sum(check["predicted"]), results["labels"], results["unlabeled"]) == (30, [3, 3], 24)
    assert len(results["prior"]) == 2
    assert (results["graph_rows"], results["neighbours_recall"]) == (30, 1.0)
    found = rows_of(out / "predictions.csv")
    assert [row["file_name"] for row in found] == [f"{number:02d}.jpg" for number in range(30)]
    assert {row["label"] for row in found} <= set(CLASSES)
    assert {row["truth"] for row in found} == {""}  # it was trained with them
    for command in (("report", out), ("audit", out), ("next", out, place / "photos")):
        done(*command, "--out", place / f"{command[0]}.out")


def test_the_model_is_the_fit_of_its_features_as_the_estimators_is(trained, place):
    """The same bits for equal features, labels and seed."""
    from debiaspl import DebiasedClassifier
    from debiaspl.data import GivenLabels

    run = trained[1]
    network = load_model(run).network
    images = GivenLabels(table=str(place / "labels.csv")).read(str(place / "photos"), 24, stream=True)
    kept = encoding.features_of(images, network.encoder, place / "runs" / ".features").values
    cpu = torch.device("cpu")
    fitted = fit(kept, images.labels, 2, steps=40, seed=0, unit=True, device=cpu)
    assert torch.equal(fitted.network.head.weight, network.head.weight)
    assert torch.equal(fitted.network.scaling.mean, network.scaling.mean)

    class Seed(np.random.RandomState):
        def randint(self, *_):
            return 0

    one = DebiasedClassifier(max_iter=40, scaling="unit", random_state=Seed(), device="cpu")
    one.fit(kept.numpy(), images.labels.numpy())
    assert torch.equal(one.model_.head.weight, network.head.weight)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=ON_A_GPU)])
def test_the_model_that_is_returned_is_that_of_the_folder(place, tmp_path, device):
    more = ["steps=5", "frozen=true"]
    model = package.train_photos(
        place / "photos", place / "labels.csv", str(place / "encoder"), tmp_path / "run", more, device=device
    )
    photos = sorted((place / "photos").iterdir())
    saved = load_model(tmp_path / "run", device)
    assert torch.equal(model.probabilities(photos), saved.probabilities(photos))


def test_a_walk_is_short(place, tmp_path, monkeypatch):
    """Each photo is decoded once for its features, the encoder built once, its weights read once; few modules run."""
    decoded, built, loaded, read, ran = Counter(), [], [], [], set()
    real_read, real_decode, real_load = lazy.FolderFiles.read, encoding.decode, encoder_module.nn.Module.__init__

    def reading(files, position):
        read.append(files.names[position])
        return real_read(files, position)

    def decoding(content, *others):
        decoded[content] += 1
        return real_decode(content, *others)

    def building(module, *arguments, **named):
        if isinstance(module, encoder_module.Encoder):
            built.append(type(module).__name__)
        real_load(module, *arguments, **named)

    monkeypatch.setattr(lazy.FolderFiles, "read", reading)
    monkeypatch.setattr(encoding, "decode", decoding)
    monkeypatch.setattr(encoder_module.nn.Module, "__init__", building)
    real_weights = network.load_hub_encoder
    monkeypatch.setattr(network, "load_hub_encoder", lambda *what: loaded.append(what) or real_weights(*what))
    home = str(Path(package.__file__).parent)

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(home) and frame.f_code.co_name != "<module>":
            ran.add(frame.f_code.co_filename)

    few = ["steps=5"]
    package.train_photos(
        place / "photos", place / "labels.csv", str(place / "encoder"), tmp_path / "a" / "run", few, device="cpu"
    )  # imports everything
    for seen in (decoded, built, loaded, read):
        seen.clear()
    table = tmp_path / "labels.csv"
    table.write_text((place / "labels.csv").read_text() + '06.jpg,"china, old"\n07.jpg,flower\n')
    sys.setprofile(note)
    try:
        package.train_photos(place / "photos", table, str(place / "encoder"), tmp_path / "run", few, device="cpu")
    finally:
        sys.setprofile(None)
    assert sorted(read) == sorted(path.name for path in (place / "photos").iterdir())
    assert set(decoded.values()) == {1}
    assert len(decoded) == 30
    assert len(built) == len(loaded) == 1
    assert len(ran) <= 74, " ".join(sorted(path.removeprefix(home) for path in ran))


def test_one_photo_more_encodes_one_photo(place, tmp_path, monkeypatch):
    shutil.copytree(place / "photos", tmp_path / "photos")
    where = tmp_path / "photos", place / "labels.csv", str(place / "encoder")
    encoded, encoder = [], load_encoder(str(place / "encoder"))  # which tries it on two pictures
    monkeypatch.setattr("debiaspl.photos.api.load_encoder", lambda name: encoder)
    real = encoder_module.Encoder.embed

    def embed(self, images):
        if len(images) == encoding.BATCH["cpu"]:  # loading an encoder tries it on fewer
            encoded.append(images)
        return real(self, images)

    monkeypatch.setattr(encoder_module.Encoder, "embed", embed)
    package.train_photos(*where, tmp_path / "first", ["steps=5"], device="cpu")
    before = len(encoded)
    assert before == 8  # 30 photos in batches of 4
    package.train_photos(*where, tmp_path / "same", ["steps=5", "seed=5"], device="cpu")
    assert len(encoded) == before
    (tmp_path / "photos" / "more.jpg").write_bytes(jpeg(patch(0, 99, 24)))
    package.train_photos(*where, tmp_path / "more", ["steps=5"], device="cpu")
    assert len(encoded) == before + 1


def test_a_moved_run_predicts_the_same_without_the_encoder_it_came_from(trained, place, tmp_path):
    shutil.copytree(trained[1], tmp_path / "moved")
    encoder = (place / "encoder").rename(place / "gone")
    try:
        model = load_model(tmp_path / "moved")
        assert model.classes == CLASSES
        found = rows_of(trained[1] / "predictions.csv")
        pictures = torch.stack([decode(place / "photos" / row["file_name"], model.size) for row in found])
        confidence, label = model.probabilities(pictures).max(-1)
    finally:
        encoder.rename(place / "encoder")
    assert [CLASSES[number] for number in label.tolist()] == [row["label"] for row in found]
    expected = torch.tensor([float(row["confidence"]) for row in found])
    torch.testing.assert_close(confidence.float(), expected, rtol=0, atol=1e-4)


def test_labels_that_were_added_after_training_are_evaluated(trained, place, tmp_path):
    out, more, numbers = trained[1], tmp_path / "more.csv", tmp_path / "numbers.json"
    added = "".join(f'{number:02d}.jpg,"{CLASSES[number % 2]}"\n' for number in range(6, 16))
    more.write_text((place / "labels.csv").read_text() + added)
    ran = done("evaluate", out, place / "photos", "--labels", more, "--out", numbers, "--device", "cpu")
    assert "6 photos that the run was trained with are left out" in ran
    told = json.loads(numbers.read_text())
    assert (told["images"], told["trained_with_left_out"]) == (10, 6)


def test_a_killed_run_goes_on_to_the_same_bits_and_a_finished_one_is_not_repeated(trained, place, monkeypatch):
    out, real = place / "runs" / "second", frozen.crosscheck

    def killed(*_):
        raise ValueError("somebody pulled the plug.")

    monkeypatch.setattr(frozen, "crosscheck", killed)
    assert "somebody pulled the plug" in refused(*asked(place, out))
    monkeypatch.setattr(frozen, "crosscheck", real)
    assert "already contains a run" in refused(*asked(place, out))
    ran = done(*asked(place, out, "--resume"))
    assert f"Resuming {out}." in ran
    for file in ("predictions.csv", "model.safetensors"):
        assert (out / file).read_bytes() == (trained[1] / file).read_bytes(), file
    monkeypatch.setattr(frozen, "crosscheck", killed)
    again = done(*asked(place, out, "--resume"))
    assert again.splitlines()[-6:] == ran.splitlines()[-6:]
    assert f"{out} has ended already; nothing was trained. After new labels" in again
    assert "of another recipe" in refused(*asked(place, out, "--resume", "--set", "seed=3"))


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("algorithm=softmatch", "softmatch+debiaser"),
        ("correction=none", "fixmatch"),
        ("--method supervised", "supervised"),
        ("strength=0.2", "debiaspl"),
    ],
)
def test_methods_and_settings_act(setting, name, place, tmp_path):
    more = setting.split() if setting.startswith("--") else ("--set", setting)
    done(*asked(place, tmp_path / "run", *more, "--set", "steps=5"))
    results = results_of(tmp_path / "run")
    assert results["check"]["candidates"][-1]["name"] == name
    assert len(results["check"]["candidates"]) == (1 if "supervised" in name else 3)


@pytest.mark.parametrize(
    "setting", ["strong=fixmatch", "start=runs/other", "validation=0.2", "algorithm=contrastmatch"]
)
def test_what_has_no_effect_is_refused(setting, place, tmp_path):
    assert setting.partition("=")[2] in refused(*asked(place, tmp_path / "run", "--set", setting))
    assert not (tmp_path / "run").exists()


def test_a_graph_of_some_photos(place, tmp_path):
    write_labels(tmp_path / "labels.csv", {f"{number}.jpg": CLASSES[number > 26] for number in range(24, 30)})
    photos = shutil.copytree(place / "photos", tmp_path / "photos")
    shutil.copy(photos / "24.jpg", photos / "29.jpg")
    where = photos, "--labels", tmp_path / "labels.csv", "--encoder", place / "encoder", "--device", "cpu"
    done("train", *where, "--out", tmp_path / "run", "--fit-on", 12, "--set", "steps=20")
    results = results_of(tmp_path / "run")
    assert (results["graph_rows"], results["recipe"]["fit_on"], results["labels"]) == (12, 12, [3, 3])
    assert results["check"]["copies"] == [["24.jpg", 0, 1], ["29.jpg", 1, 0]]
    assert len((tmp_path / "run" / "predictions.csv").read_text().splitlines()) == 31


@pytest.mark.parametrize(("lost", "folds"), [((2,), 2), ((2, 3), 0)])
def test_a_label_of_a_photo_that_cannot_be_read_checks_nothing(lost, folds, place, tmp_path):
    shutil.copytree(place / "photos", tmp_path / "photos")
    (tmp_path / "labels.csv").write_text("\n".join((place / "labels.csv").read_text().splitlines()[:5]))
    for number in lost:
        (tmp_path / "photos" / f"{number:02d}.jpg").write_bytes(b"damaged")
    where = tmp_path / "photos", "--labels", tmp_path / "labels.csv", "--encoder", place / "encoder", "--device", "cpu"
    done("train", *where, "--out", tmp_path / "run", "--set", "steps=2")
    results = results_of(tmp_path / "run")
    kind = "cross-check" if folds else "none"
    assert results["check"].items() >= {"kind": kind, "folds": folds, "labels": folds}.items()
    assert results["test"] == 2
    assert results["skipped"] == [f"{number:02d}.jpg" for number in lost]
    (tmp_path / "photos" / "00.jpg").write_bytes(b"damaged")
    assert "no labeled image" in refused("train", *where, "--out", tmp_path / "other", "--set", "steps=2")


def test_all_images_labeled(place, tmp_path):
    names = sorted(path.name for path in (place / "photos").iterdir())
    table = write_labels(tmp_path / "all.csv", {name: CLASSES[number % 2] for number, name in enumerate(names)})
    where = "--labels", table, "--encoder", place / "encoder", "--device", "cpu"
    ran = done("train", place / "photos", *where, "--out", tmp_path / "run", "--set", "steps=10")
    assert "30 images, 30 labels, 2 classes; 15 of each. Every image has a label." in ran
    assert "Every photo has a label, so this is a supervised model." in ran


def test_a_supervised_run_that_is_asked_for_does_not_look_at_the_other_photos(place):
    photos, name = survey(place / "photos", place / "labels.csv"), str(place / "encoder")
    encoder = load_encoder(name)
    supervised = ["algorithm=supervised", "correction=none"]
    for settings, first in (([], "graph"), (supervised, "random"), ([*supervised, "first_classifier=graph"], "graph")):
        assert choose_with_start(photos, "cpu", encoder, settings, None)[0].first_classifier == first


def test_ctrl_c_keeps_what_is_encoded(place, tmp_path, monkeypatch):
    from debiaspl.features import run

    class Asked:
        def __enter__(self):
            return lambda: 2

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(run, "stop_requests", Asked)
    monkeypatch.setattr("sys.argv", ["debiaspl", "train", "photos"])
    ran = debiaspl(*asked(place, tmp_path / "run"))
    assert ran.exit_code == 130
    assert re.search(
        r"Stopped; the features of \d+ of 30 images are kept\. Resume with:\s+debiaspl train photos", ran.stderr
    )

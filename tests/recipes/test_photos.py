"""``debiaspl train FOLDER``: what is chosen, what is checked, what is said, and what is refused."""

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

pytest.importorskip("transformers")

from debiaspl.cli import app
from debiaspl.data import GivenLabels, ImageSet, Task
from debiaspl.data.decode import decode
from debiaspl.data.given import fold_of
from debiaspl.deploy import load_model
from debiaspl.encoders import load_encoder
from debiaspl.recipes import photos as photos_module
from debiaspl.recipes import photos_run, photos_time
from debiaspl.recipes.photos import Check, Photos, check_for, choose, survey, working_size
from debiaspl.recipes.photos_alike import alike
from debiaspl.recipes.photos_run import Outcome
from debiaspl.recipes.photos_table import caption, rows, verdict
from debiaspl.recipes.photos_time import in_words
from debiaspl.training import frozen
from debiaspl.training.log import ProgressLine
from tests.data.photos import jpeg, patch
from tests.encoders.tiny import save

SIDE = 24
PER_CLASS = 15
CLASSES = ("china, old", "flower")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """photos/, labels.csv with three labels a class, and a tiny encoder."""
    root = tmp_path_factory.mktemp("user")
    (root / "photos").mkdir()
    table = [("file_name", "label")]
    for number in range(2 * PER_CLASS):
        name = f"{number:02d}.jpg"
        (root / "photos" / name).write_bytes(jpeg(patch(number % 2, number, SIDE)))
        if number < 6:
            table.append((name, CLASSES[number % 2]))
    with (root / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(table)
    save("resnet", root / "encoder")
    return root


def debiaspl(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def train(place, out, *more):
    where = "--labels", place / "labels.csv", "--encoder", place / "encoder", "--device", "cpu"
    return debiaspl("train", place / "photos", *where, "--out", out, "--set", "steps=40", *more)


@pytest.fixture(scope="module")
def trained(place):
    return train(place, place / "runs" / "first"), place / "runs" / "first"


def test_two_lines_before_and_a_table_after(trained):
    ran, out = trained
    assert ran.exit_code == 0, ran.output
    said = ran.output.splitlines()
    assert said[0] == "30 images, 6 labels, 2 classes; 3 of each."
    assert said[1].startswith("Encoder, frozen, at 24 x 24 pixels, 40 steps. Too few labels to hold any out: 6 are ")
    assert re.search(r"cross-checked in 3 folds\. About .* cores?, in 8 runs\.$", said[1])
    assert said[2].split() == ["right", "of", "accuracy", "95", "%", "interval", "worst", "class"]
    assert [line.split()[0] for line in said[3:5]] == ["supervised", "DebiasPL"]
    assert said[5] == "Each of 6 labels was predicted by one of 3 models that did not learn from it."
    assert said[-1] == f"The run is in {out}; the report is {out / 'report.html'}"


def test_the_run_is_a_run_like_any_other(trained, place):
    out = trained[1]
    files = ["config.json", "log.jsonl", "model.safetensors", "predictions.csv", "report.html", "results.json"]
    assert all((run / file).exists() for run in (out, out / "supervised") for file in files if "html" not in file)
    assert (out / "report.html").exists()
    results = json.loads((out / "results.json").read_text())
    assert results["test"] == 6
    assert results["check"] == {"kind": "cross-check", "folds": 3, "labels": 6}
    folds = [json.loads(path.read_text()) for path in sorted(out.glob("check/fixmatch-fold*/results.json"))]
    assert len(folds) == 3
    pooled = sum(torch.tensor(fold["confusion"]) for fold in folds)
    assert results["confusion"] == pooled.tolist()
    assert pooled.sum(1).tolist() == [3, 3]
    assert not list(out.glob("check/*/model.safetensors"))
    assert debiaspl("report", out, "--out", place / "again.html").exit_code == 0
    assert debiaspl("audit", out, "--out", place / "audit.html").exit_code == 0


def test_views_of_large_sets_are_made_of_the_features(place, tmp_path, monkeypatch):
    assert (frozen.views_of(2000).weak, frozen.views_of(2000).strong) == (2, 2)
    assert (frozen.views_of(2001).weak, frozen.views_of(2001).strong) == (0, 0)
    monkeypatch.setattr(frozen, "VIEWED", 0)
    ran = train(place, tmp_path / "large")
    assert ran.exit_code == 0, ran.output
    (kept,) = (tmp_path / ".features").iterdir()
    assert load_file(kept)["strong"].shape[0] == load_file(kept)["weak"].shape[0] == 0
    log = [json.loads(line) for line in (tmp_path / "large" / "log.jsonl").read_text().splitlines()]
    assert log[-1]["losses"]["unlabeled"] > 0


def test_every_photo_has_a_prediction_and_none_tells_a_label_it_was_trained_with(trained):
    with (trained[1] / "predictions.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["file_name"] for row in found] == [f"{number:02d}.jpg" for number in range(30)]
    assert {row["label"] for row in found} <= set(CLASSES)
    assert {row["truth"] for row in found} == {""}


def test_a_moved_run_predicts_the_same_without_the_encoder_it_came_from(trained, place, tmp_path):
    shutil.copytree(trained[1], tmp_path / "moved")
    encoder = (place / "encoder").rename(place / "gone")
    try:
        model = load_model(tmp_path / "moved")
        assert model.classes == CLASSES
        with (trained[1] / "predictions.csv").open(newline="") as file:
            found = list(csv.DictReader(file))
        pictures = torch.stack([decode(place / "photos" / row["file_name"], model.size) for row in found])
        confidence, label = model.probabilities(pictures).max(-1)
    finally:
        encoder.rename(place / "encoder")
    assert [CLASSES[number] for number in label.tolist()] == [row["label"] for row in found]
    expected = torch.tensor([float(row["confidence"]) for row in found])
    torch.testing.assert_close(confidence.float(), expected, rtol=0, atol=1e-4)


def test_the_same_seed_gives_the_same_labels_also_after_a_stop(trained, place, monkeypatch):
    real, calls = photos_run.train, []

    def stopped(*arguments, **named):
        calls.append(arguments)
        if len(calls) == 6:
            raise ValueError("somebody pulled the plug.")
        return real(*arguments, **named)

    out = place / "runs" / "second"
    monkeypatch.setattr(photos_run, "train", stopped)
    assert "somebody pulled the plug" in train(place, out).output
    monkeypatch.setattr(photos_run, "train", real)
    assert "already holds a run" in train(place, out).output
    said = []
    monkeypatch.setattr(ProgressLine, "say", lambda line, *parts: said.append(parts))
    ran = train(place, out, "--resume")
    assert ran.exit_code == 0
    assert f"Going on with {out}." in ran.output
    for file in ("predictions.csv", "model.safetensors", "supervised/predictions.csv"):
        assert (out / file).read_bytes() == (trained[1] / file).read_bytes(), file
    # Of runs that had ended nothing is said, but they count.
    assert [parts[1] for parts in said if parts[0] == "photos, classifier: 40 steps"] == [
        "run 6 of 8 (DebiasPL, fold 2 of 3)",
        "run 7 of 8 (DebiasPL, fold 3 of 3)",
        "run 8 of 8 (DebiasPL)",
    ]
    assert ("photos, reading: image 30/30", "0:00 left") in said


def test_features_are_computed_once_for_all_runs(trained, place):
    kept = sorted(path.name for path in (place / "runs" / ".features").iterdir())
    assert len(kept) == 1
    train(place, place / "runs" / "other", "--set", "seed=5")
    assert sorted(path.name for path in (place / "runs" / ".features").iterdir()) == kept


def test_class_folders_and_a_small_network(place, tmp_path, monkeypatch):
    """Without an encoder; and with labels enough to hold some out."""
    monkeypatch.setattr(photos_module, "ENOUGH", 3)
    monkeypatch.setattr(photos_module, "ENOUGH_IN_ALL", 1)
    for number, source in enumerate(sorted((place / "photos").iterdir())):
        folder = tmp_path / "photos" / (("owl", "heron")[number % 2] if number < 10 else "unlabeled")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / source.name)
    out, said = tmp_path / "run", []
    monkeypatch.setattr(ProgressLine, "say", lambda line, *parts: said.append(parts))
    batches = "--set", "labeled_batch=4", "--set", "unlabeled_batch=8", "--set", "width=2"
    ran = debiaspl("train", tmp_path / "photos", "--device", "cpu", "--out", out, "--set", "steps=3", *batches)
    assert ran.exit_code == 0, ran.output
    assert "A small network, at 24 x 24 pixels, 3 steps. 2 labels are held out to check with." in ran.output
    assert re.search(r"About 10 seconds on .* cores?, in 2 runs\.", ran.output)
    steps = [parts[-1] for parts in said if parts[0] == "photos step 3/3"]
    assert steps == ["0:00 left of run 1 of 2 (supervised)", "0:00 left of run 2 of 2 (DebiasPL)"]
    assert "--encoder efficientnet-lite0" in ran.output
    results = json.loads((out / "results.json").read_text())
    assert (results["labels"], results["test"], results["unlabeled"]) == ([4, 4], 2, 22)
    with (out / "predictions.csv").open(newline="") as file:
        told = {row["file_name"]: row["truth"] for row in csv.DictReader(file) if row["truth"]}
    assert sorted(told.values()) == ["heron", "owl"]
    assert all(name.startswith(f"{label}/") for name, label in told.items())
    assert not (out / "check").exists()


@pytest.mark.parametrize(("lost", "folds"), [((2,), 2), ((2, 3), 0)])
def test_a_label_of_a_photo_that_cannot_be_read_checks_nothing(lost, folds, place, tmp_path):
    shutil.copytree(place / "photos", tmp_path / "photos")
    table = (place / "labels.csv").read_text().splitlines()[:5]  # two of each class: three folds
    (tmp_path / "labels.csv").write_text("\n".join(table))
    for number in lost:
        (tmp_path / "photos" / f"{number:02d}.jpg").write_bytes(b"damaged")
    asked = tmp_path / "photos", "--labels", tmp_path / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    ran = debiaspl("train", *asked, "--set", "steps=2")
    assert ran.exit_code == 0, ran.output
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    kind = "cross-check" if folds else "none"
    assert results["check"] == {"kind": kind, "folds": folds, "labels": folds}
    assert results["test"] == 2  # never a label that the run of its fold has learned from, unless it is said
    assert len(list(tmp_path.glob("run/check/fixmatch-*"))) == folds
    said = ran.output.splitlines()[-3]
    assert said == caption(Outcome({}, {}, Check(folds, True, folds)))
    again = debiaspl("train", *asked, "--set", "steps=2", "--resume")
    assert again.output.splitlines()[-4:] == ran.output.splitlines()[-4:]


def test_a_stopped_run_does_not_go_on_with_other_labels(place, tmp_path):
    shutil.copy(place / "labels.csv", tmp_path / "labels.csv")
    asked = place / "photos", "--labels", tmp_path / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    asked += "--encoder", place / "encoder", "--set", "steps=5"
    assert debiaspl("train", *asked).exit_code == 0
    for part in ("run", "run/supervised"):  # as if it was stopped after the folds
        (tmp_path / part / "results.json").unlink()
    with (tmp_path / "labels.csv").open("a") as file:
        file.write("20.jpg,flower\n")
    ran = debiaspl("train", *asked, "--resume")
    assert ran.exit_code == 1
    assert "the labels are not those that" in ran.output
    shutil.copy(place / "labels.csv", tmp_path / "labels.csv")
    assert debiaspl("train", *asked, "--resume").exit_code == 0


def test_all_images_labeled(place, tmp_path):
    with (tmp_path / "all.csv").open("w", newline="") as file:
        names = sorted(path.name for path in (place / "photos").iterdir())
        table = [(name, CLASSES[number % 2]) for number, name in enumerate(names)]
        csv.writer(file).writerows([("file_name", "label"), *table])
    where = "--labels", tmp_path / "all.csv", "--encoder", place / "encoder", "--device", "cpu"
    ran = debiaspl("train", place / "photos", *where, "--out", tmp_path / "run", "--set", "steps=10")
    assert ran.exit_code == 0, ran.output
    assert "30 images, 30 labels, 2 classes; 15 of each. Every image has a label." in ran.output
    assert "there was nothing to learn without one: this is a supervised model." in ran.output
    assert not (tmp_path / "run" / "supervised").exists()


@pytest.mark.parametrize("kind", ["resnet", "vit"])
def test_what_a_gpu_would_do_fine_tunes_the_encoder(kind, place, tmp_path):
    """A step or two of it, on a CPU."""
    folder = tmp_path / kind
    save(kind, folder)
    encoder = load_encoder(str(folder))
    photos = survey(place / "photos", place / "labels.csv")
    chosen = choose(photos, "cuda", (str(folder), encoder))
    few = ["steps=2", "labeled_batch=4", "unlabeled_batch=6", "learning_rate=0.001", "seed=1"]
    outcome = photos_run.train_photos(chosen.with_settings(few), check_for(photos), tmp_path / "run", device="cpu")
    assert outcome.semi["mode"] == "fast"
    model = load_model(tmp_path / "run")
    before = dict(encoder.named_parameters())
    for name, after in model.network.encoder.named_parameters():
        torch.testing.assert_close(after, before[name], rtol=0.1, atol=0.05)
    assert any(not torch.equal(after, before[name]) for name, after in model.network.encoder.named_parameters())


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


def no_header(root):
    (root / "labels.csv").write_text("00.jpg,owl\n01.jpg,heron\n")


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
        bad(no_labels)("no image of PHOTOS has a label. Expected two or more different names: label a few images"),
        bad(one_class)("the classes of PHOTOS are owl. Expected two or more different names: label a few images"),
        bad(a_label_for_a_missing_file)("names 1 file not in PHOTOS: 99.jpg. Paths are relative to PHOTOS"),
        bad(two_images)("PHOTOS holds 2 images, expected 10 or more. Put the photos that have no label there too"),
        bad(an_empty_folder)("names 6 files not in PHOTOS"),
        bad(no_header)("has the columns 00.jpg, owl. Expected a first line with file_name and label"),
        bad(contradictory_rows)("says owl for 00.jpg in line 2 and heron in line 4. Keep one of the two."),
        bad(no_table)("labels.csv cannot be read: No such file or directory"),
        bad(no_folder)("PHOTOS does not exist. Expected a folder of images."),
        bad(nothing_readable)("of PHOTOS that were looked at can be read"),
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
    assert "holds no image and no other file. Images end in .jpg" in ran.output


def test_neither_photos_nor_recipe_and_both(place):
    for arguments in (
        [],
        [place / "photos", "--recipe", "digits-10"],
        ["--recipe", "digits-10", "--encoder", "x"],
        ["--recipe", "digits-10", "--allow-alike"],
    ):
        ran = debiaspl("train", *arguments)
        assert ran.exit_code == 1
        assert "error: expected a folder of photos (debiaspl train photos/ --labels labels.csv)" in ran.output


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--root", "sets"), "--root sets is where known sets are looked for, which a --recipe names"),
        (("--timeout", 600), "--timeout 600 is for several processes, started with torchrun"),
    ],
)
def test_what_is_for_recipes_alone_is_refused(option, words, place, tmp_path):
    ran = train(place, tmp_path / "run", *option)
    assert ran.exit_code == 1
    assert ran.output.startswith(f"error: {words}")
    assert not (tmp_path / "run").exists()


def test_eager_reaches_every_step_and_a_run_that_is_not_there_is_told(place, tmp_path, monkeypatch):
    told = []

    def timed(*arguments, record=True, **named):
        told.append(record)
        raise ValueError("timed")

    def trained(*arguments, eager=False, **named):
        told.append(not eager)
        raise ValueError("trained")

    monkeypatch.setattr(photos_time, "Step", timed)
    monkeypatch.setattr(photos_run, "train", trained)
    where = "--labels", place / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    for more in ((), ("--eager",)):
        ran = debiaspl("train", place / "photos", *where, "--resume", *more)
        said = ran.stderr.splitlines()
        assert said == [f"--resume found no run in {tmp_path / 'run'}: a new one begins there.", "error: timed"]
    photos = survey(place / "photos", place / "labels.csv")
    for eager in (False, True):
        with pytest.raises(ValueError, match="trained"):
            photos_run.train_photos(choose(photos, "cpu"), check_for(photos), tmp_path / f"{eager}", eager=eager)
    monkeypatch.setattr(photos_time, "estimate", lambda *_: 1.0)
    assert debiaspl("train", place / "photos", *where, "--eager").stderr == "error: trained\n"
    ran = debiaspl("train", place / "photos", *where, "--eager", "--resume")
    assert f"Going on with {tmp_path / 'run'}." in ran.output
    assert ran.stderr == "error: trained\n"
    assert told == [True, False, True, False, False, False]


def test_ctrl_c_at_any_time_says_how_to_go_on(place, tmp_path, monkeypatch):
    """Outside the training, which listens to it, or for the second time."""

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(photos_run, "train", stopped)
    monkeypatch.setattr("sys.argv", ["debiaspl", "train", "photos"])
    ran = train(place, tmp_path / "run")
    assert ran.exit_code == 130
    assert ran.stderr == "Stopped. Go on with: debiaspl train photos --resume\n"
    monkeypatch.setattr(photos_module, "list_folder", stopped)
    ran = train(place, tmp_path / "other")
    assert (ran.exit_code, ran.stderr) == (130, "Stopped.\n")
    assert not (tmp_path / "other").exists()


def test_an_algorithm_of_ones_own(place, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("from debiaspl.algorithms import FixMatch\n\n\nclass Mine(FixMatch): pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(photos_time, "estimate", lambda *_: 1.0)
    where = "--labels", place / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    ran = debiaspl("train", place / "photos", *where, "--set", "algorithm=mine.py:Mine", "--set", "steps=2")
    assert ran.exit_code == 0, ran.output
    assert json.loads((tmp_path / "run" / "config.json").read_text())["recipe"]["algorithm"]["name"] == "mine.py:Mine"


def test_a_bad_encoder_leaves_nothing(place, tmp_path):
    where = place / "photos", "--labels", place / "labels.csv", "--out", tmp_path / "run", "--device", "cpu"
    ran = debiaspl("train", *where, "--encoder", tmp_path / "none")
    assert ran.exit_code == 1
    assert "does not exist, expected a folder, or a name on the hub" in ran.output
    assert not (tmp_path / "run").exists()


def made(*counts, unlabeled=100, side=64):
    labels = [number for number, count in enumerate(counts) for _ in range(count)]
    classes = tuple(f"class {number}" for number in range(len(counts)))
    return Photos(Path("photos"), None, torch.tensor(labels + [-1] * unlabeled), classes, side)


def test_enough_labels_are_held_out_and_fewer_cross_checked():
    assert check_for(made(200, 100)) == Check(folds=5, all_in_turn=False, labels=60)
    assert check_for(made(200, 9)) == Check(folds=3, all_in_turn=True, labels=209)
    assert check_for(made(20, 20)) == Check(folds=3, all_in_turn=True, labels=40)
    assert check_for(made(2, 1, 1)) == Check(folds=2, all_in_turn=True, labels=2)
    assert check_for(made(1, 1)) == Check(folds=0, all_in_turn=True, labels=0)


@pytest.mark.parametrize("counts", [(5, 5, 5), (1, 2, 7, 3), (2, 2), (40, 1)])
@pytest.mark.parametrize("folds", [2, 3, 5])
def test_folds(counts, folds):
    labels = made(*counts, unlabeled=4).labels
    found = fold_of(labels, folds, seed=3)
    held_out = [number for number, count in enumerate(counts) if count > 1]
    for number in range(len(counts)):
        own = found[labels == number]
        assert (own >= 0).all() == (number in held_out)
        # Something of each class is always left to train with.
        assert all((own != fold).any() for fold in range(folds))
    sizes = torch.bincount(found[found >= 0], minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    assert (found[labels < 0] == -1).all()
    assert any(not torch.equal(fold_of(labels, folds, seed), found) for seed in range(10))
    for fold in range(folds):
        protocol = GivenLabels(folds=folds, fold=fold)
        split, part = protocol.split(labels, 3), protocol.held_out(labels, 3)
        assert not set(split.labeled.tolist()) & {*part.tolist(), *split.unlabeled.tolist()}
        assert set(part.tolist()) <= set(split.unlabeled.tolist())


def test_held_out_labels_reach_no_loss():
    labels = made(6, 6, unlabeled=8).labels
    images = ImageSet(torch.zeros((20, 3, 8, 8), dtype=torch.uint8), labels, ("a", "b"))
    task = Task.of_given(images, GivenLabels(folds=3, fold=1), seed=0)
    assert (task.unlabeled.labels == -1).all()
    assert not set(task.labeled.ids) & set(task.test.ids)
    assert set(task.test.ids) <= set(task.unlabeled.ids)
    with pytest.raises(ValueError, match=r"fold 3 of 3 folds, expected"):
        GivenLabels(folds=3, fold=3)


@pytest.mark.parametrize(
    ("classes", "groups"),
    [
        (("Owl", "owl", "heron"), [["Owl", "owl"]]),
        (("grey  owl", "grey owl", "Grey owl "), [["grey  owl", "grey owl", "Grey owl "]]),
        (("Unlabeled", "owl", "heron"), [["unlabeled", "Unlabeled"]]),
        (("Straße", "STRASSE", "a", "A"), [["Straße", "STRASSE"], ["a", "A"]]),
        (("owl", "owls", "grey owl", "greyowl"), []),
    ],
)
def test_names_that_are_alike(classes, groups):
    assert alike(classes) == groups


def test_classes_that_differ_in_capitals_or_spaces_alone_are_refused_unless_allowed(place, tmp_path, monkeypatch):
    monkeypatch.setattr(photos_time, "estimate", lambda *_: 1.0)
    names = ["Owl", "Owl", "owl ", "grey  owl", "grey owl", "Unlabeled"]
    table, out = tmp_path / "labels.csv", tmp_path / "run"
    table.write_text("file_name,label\n" + "".join(f"{number:02d}.jpg,{name}\n" for number, name in enumerate(names)))
    asked = "train", place / "photos", "--labels", table, "--device", "cpu", "--out", out, "--set", "steps=1"
    ran = debiaspl(*asked)
    assert ran.exit_code == 1
    assert ran.output == (
        f"error: {table} has names that differ in capital letters or spaces alone: 'unlabeled' (which means: no label) "
        "and 'Unlabeled' (1 photo); 'Owl' (2 photos) and 'owl' (1 photo); 'grey  owl' (1 photo) and 'grey owl' (1 "
        "photo). Each would be learned as a class of its own. If they are one, write: 'unlabeled' instead of "
        "'Unlabeled', 'Owl' instead of 'owl', 'grey owl' instead of 'grey  owl'. If they are not, allow it: "
        "--allow-alike.\n"
    )
    assert not out.exists()
    allowed = debiaspl(*asked, "--allow-alike")
    assert allowed.exit_code == 0, allowed.output
    assert "30 images, 6 labels, 5 classes; rarest: Unlabeled (1)." in allowed.output


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


def test_the_log_of_the_baseline_tells_of_no_pseudo_labels(trained):
    lines = [json.loads(line) for line in (trained[1] / "supervised" / "log.jsonl").read_text().splitlines()]
    assert all(set(line) == {"step", "losses", "seconds"} and set(line["losses"]) == {"labeled"} for line in lines)
    assert "kept" in json.loads((trained[1] / "log.jsonl").read_text().splitlines()[-1])


def test_the_report_says_what_the_runs_were_measured_on(trained):
    page = (trained[1] / "report.html").read_text()
    assert "cross-checked labels" in page
    assert "One seed each: a difference may be chance where the intervals overlap." in page


@pytest.mark.parametrize(("unlabeled", "memory"), [(90, 0), (885, 0), (886, 224), (9990, 2500), (10**5, 4096)])
def test_no_photo_is_told_from_itself(unlabeled, memory):
    """On a GPU: the contrast remembers a quarter of the photos at most, and without a memory steps are smaller."""
    chosen = choose(made(5, 5, unlabeled=unlabeled), "cuda")
    assert chosen.algorithm.settings["memory"] == memory
    assert (chosen.algorithm.settings["relations"], chosen.learning_rate) == ((0.5, 0.25) if memory else (0, 0.06))


def test_what_is_chosen(place):
    photos = made(5, 5, side=400)
    encoder = load_encoder(str(place / "encoder"))
    small, wide = choose(photos, "cpu"), choose(photos, "cuda")
    assert (small.network.name, small.image_size) == ("small", 32)
    assert (wide.network.name, wide.image_size) == ("resnet9", 64)
    frozen, tuned = (choose(photos, device, ("x", encoder)) for device in ("cpu", "cuda"))
    assert frozen.network.settings["frozen"]
    assert "frozen" not in tuned.network.settings
    assert frozen.image_size == tuned.image_size == encoder.image_size
    assert not frozen.stream
    many = replace(photos, labels=torch.cat((photos.labels, torch.full((10**6,), -1))))
    assert choose(many, "cpu").stream
    assert choose(made(5, 5, unlabeled=0), "cpu").algorithm.name == "supervised"
    assert type(choose(photos, "cpu", ("x", encoder))).from_json(json.loads(json.dumps(frozen.to_json()))) == frozen


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@torch.no_grad()
def test_the_chosen_network_takes_the_chosen_size(device):
    for side in range(1, 10):
        chosen = choose(made(5, 5, side=side), device)
        network = chosen.network.build("network", num_classes=2, channels=3)
        assert network(torch.zeros(2, 3, chosen.image_size, chosen.image_size)).shape == (2, 2)
        assert chosen.image_size == (side if device == "cpu" else max(side, 8))


@pytest.mark.parametrize(
    ("side", "device", "size"),
    [(64, "cpu", 64), (20, "cpu", 64), (100, "cpu", 128), (3000, "cpu", 224), (64, "cuda", 224)],
)
def test_an_encoder_computes_with_no_more_than_the_photos_show(side, device, size):
    assert working_size(made(2, 2, side=side), device, SimpleNamespace(image_size=224)) == size


def test_the_size_is_that_of_a_usual_photo(place):
    photos = survey(place / "photos", place / "labels.csv")
    assert (photos.side, photos.counts, photos.unlabeled) == (SIDE, [3, 3], 24)


def outcome(ours, theirs, total, folds=3):
    def results(right):
        return {"confusion": [[right, total - right], [0, 0]], "test": total, "worst_recall": right / total}

    check = Check(folds, True, total)
    return Outcome(results(ours), None if theirs is None else results(theirs), check)


@pytest.mark.parametrize(
    ("ours", "theirs", "total", "words"),
    [
        (34, 37, 50, "did not help on these labels: 34 of 50 right, and 37 from the labels alone. With so few labels"),
        (34, 34, 50, "did not help on these labels"),
        (700, 900, 1000, "and 900 from the labels alone. The supervised model is in the folder supervised; more"),
        (38, 36, 50, "may have helped: 38 of 50 labels right, instead of 36. With so few labels that may be chance."),
        (900, 700, 1000, "The unlabeled photos help: 900 of 1000 labels right, instead of 700."),
        (10, None, 10, "this is a supervised model"),
    ],
)
def test_the_verdict_is_plain(ours, theirs, total, words):
    assert words in verdict(outcome(ours, theirs, total))


def test_the_table_shows_how_few_they_are():
    assert rows(outcome(34, 37, 50))[1] == ("DebiasPL", "34", "50", "68 %", "54 to 79 %", "68 %")
    nothing = outcome(4, 4, 4, folds=0)
    assert "tells nothing of other photos" in caption(nothing)
    assert "cannot be told" in verdict(nothing)


def test_times_in_words():
    assert [in_words(seconds) for seconds in (2, 44, 130, 9 * 60, 7200)] == [
        "10 seconds",
        "40 seconds",
        "2 minutes",
        "9 minutes",
        "2.0 hours",
    ]

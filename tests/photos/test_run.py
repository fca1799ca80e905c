"""``debiaspl train FOLDER``: what is trained, what is said, and what goes on after a stop."""

import csv
import json
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip("transformers")

from debiaspl.cli.train import _plan
from debiaspl.data.decode import decode
from debiaspl.data.table_form import Columns
from debiaspl.deploy import load_model
from debiaspl.encoders import load_encoder
from debiaspl.photos import check, duration, run
from debiaspl.photos import survey as survey_module
from debiaspl.photos.check import Check, check_for
from debiaspl.photos.choose import choose
from debiaspl.photos.describe import caption
from debiaspl.photos.evidence import TrainedCandidate
from debiaspl.photos.run import Outcome
from debiaspl.photos.survey import survey
from debiaspl.recipes import frozen
from debiaspl.training import Choice, Recipe, Run
from debiaspl.training.log import ProgressLine
from debiaspl.training.settings import parse_settings
from tests.encoders.tiny import save
from tests.photos.user import CLASSES, debiaspl, train


def test_two_lines_before_and_a_table_after(trained):
    ran, out = trained
    assert ran.exit_code == 0, ran.output
    said = ran.output.splitlines()
    assert said[0] == "30 images, 6 labels, 2 classes; 3 of each."
    assert said.pop(1) == "Classes: 'china, old' 3, flower 3."
    assert said[1].startswith(
        "Encoder, frozen, at 32 x 32 pixels (photos of 24 are enlarged; faster and less accurate:"
    )
    assert "--set image_size=24), 40 steps. Too few labels to hold any out: 6 are " in said[1]
    assert re.search(r"cross-checked in 3 folds\. About .* cores?, in 12 runs\.$", said[1])
    assert said[2].split() == ["right", "of", "accuracy", "95", "%", "interval", "worst", "class"]
    assert [line.split()[0] for line in said[3:6]] == ["supervised", "graph", "DebiasPL"]
    assert said[6].startswith(
        "Each of 6 labels was predicted by one of 3 models that did not learn from it. These models had"
    )
    assert said[-1] == f"The run is in {out}; the report is {out / 'report.html'}"


def test_the_run_is_a_run_like_any_other(trained, place):
    out = trained[1]
    files = ["config.json", "log.jsonl", "model.safetensors", "predictions.csv", "report.html", "results.json"]
    assert all((run / file).exists() for run in (out, out / "supervised") for file in files if "html" not in file)
    assert (out / "report.html").exists()
    results = json.loads((out / "results.json").read_text())
    assert results["test"] == 6
    assert results["check"].items() >= {"kind": "cross-check", "folds": 3, "labels": 6}.items()
    folds = [json.loads(path.read_text()) for path in sorted(out.glob("check/debiaspl-fold*/results.json"))]
    assert len(folds) == 3
    pooled = sum(torch.tensor(fold["confusion"]) for fold in folds)
    assert results["confusion"] == pooled.tolist()
    assert pooled.sum(1).tolist() == [3, 3]
    assert not list(out.glob("check/*/model.safetensors"))
    assert debiaspl("report", out, "--out", place / "again.html").exit_code == 0
    assert debiaspl("audit", out, "--out", place / "audit.html").exit_code == 0


def test_labels_that_were_added_after_training_are_evaluated(trained, place, tmp_path):
    out, more, numbers = trained[1], tmp_path / "more.csv", tmp_path / "numbers.json"
    added = "".join(f'{number:02d}.jpg,"{CLASSES[number % 2]}"\n' for number in range(6, 16))
    before = (place / "labels.csv").read_text()
    more.write_text(before + added)
    (place / "labels.csv").write_text(before + added)
    try:
        ran = debiaspl("evaluate", out, place / "photos", "--labels", more, "--out", numbers, "--device", "cpu")
    finally:
        (place / "labels.csv").write_text(before)
    assert ran.exit_code == 0, ran.output
    assert "6 photos that the run was trained with are left out" in ran.output
    told = json.loads(numbers.read_text())
    assert (told["images"], told["trained_with_left_out"]) == (10, 6)


def test_views_of_large_sets_are_made_of_the_features(place, tmp_path, monkeypatch):
    strong = [frozen.frozen(Recipe("large"), count, "some", {}).strong.name for count in (2000, 2001)]
    assert strong == ["fixmatch", "hide"]
    monkeypatch.setattr(frozen, "VIEWED", 0)
    ran = train(place, tmp_path / "large")
    assert ran.exit_code == 0, ran.output
    assert "With over 2,000 photos no augmented views are computed. " in ran.output
    assert ", with the saved features," not in ran.output
    monkeypatch.setattr(duration, "_seconds_a_view", lambda *_: 100.0)
    photos, encoder = survey(place / "photos", place / "labels.csv"), load_encoder(str(place / "encoder"))
    recipe, where = Run(tmp_path / "large").recipe(), tmp_path / "again"
    plan = _plan(recipe, photos, check_for(photos), "cpu", encoder, False, None, where)
    assert re.search(r"About \d+ seconds, with the saved features, on ", plan)
    assert " minutes on " in _plan(recipe, photos, check_for(photos), "cpu", encoder, False, None, where / "elsewhere")
    (kept,) = (tmp_path / ".features").glob("*.safetensors")
    viewed = choose(photos, "cpu", ("x", encoder))
    assert viewed.changed(strong="fixmatch", flip=True).strong.name == "fixmatch"
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
    real, calls = run.train_as, []

    def stopped(*arguments, **named):
        calls.append(arguments)
        if len(calls) == 6:
            raise ValueError("somebody pulled the plug.")
        return real(*arguments, **named)

    out = place / "runs" / "second"
    monkeypatch.setattr(run, "train_as", stopped)
    assert "somebody pulled the plug" in train(place, out).output
    monkeypatch.setattr(run, "train_as", real)
    assert "already contains a run" in train(place, out).output
    said = []
    monkeypatch.setattr(ProgressLine, "say", lambda line, *parts: said.append(parts))
    ran = train(place, out, "--resume")
    assert ran.exit_code == 0
    assert f"Resuming {out}." in ran.output
    for file in ("predictions.csv", "model.safetensors", "supervised/predictions.csv"):
        assert (out / file).read_bytes() == (trained[1] / file).read_bytes(), file
    # Of runs that had ended nothing is said, but they count.
    assert [parts[-1].partition(" of ")[2] for parts in said if parts[0] == "photos step 40/40"] == [
        "run 6 of 12 (graph, fold 2 of 3)",
        "run 7 of 12 (graph, fold 3 of 3)",
        "run 8 of 12 (graph)",
        *(f"run {fold + 8} of 12 (DebiasPL, fold {fold} of 3)" for fold in (1, 2, 3)),
        "run 12 of 12 (DebiasPL)",
    ]
    assert ("photos, reading: image 30/30", "0:00 left") in said


def test_features_are_computed_once_for_all_runs(trained, place):
    kept = sorted(path.name for path in (place / "runs" / ".features").glob("*.safetensors"))
    assert len(kept) == 1
    train(place, place / "runs" / "other", "--set", "seed=5")
    assert sorted(path.name for path in (place / "runs" / ".features").glob("*.safetensors")) == kept


def test_class_folders_and_a_small_network(place, tmp_path, monkeypatch):
    """Without an encoder; and with labels enough to hold some out."""
    monkeypatch.setattr(check, "ENOUGH", 3)
    monkeypatch.setattr(check, "ENOUGH_IN_ALL", 1)
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
    assert results["check"].items() >= {"kind": kind, "folds": folds, "labels": folds}.items()
    assert results["test"] == 2  # never a label that the run of its fold has learned from, unless it is said
    assert len(list(tmp_path.glob("run/check/debiaspl-*"))) == folds
    run = TrainedCandidate("DebiasPL", {})
    assert caption(Outcome((run,), Check(folds, True, folds), run)) in ran.output
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
    assert "the labels have changed since" in ran.output
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
    assert "Every photo has a label, so this is a supervised model." in ran.output
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
    outcome = run.train_photos(parse_settings(chosen, few), check_for(photos), tmp_path / "run", device="cpu")
    assert outcome.semi["mode"] == "fast"
    model = load_model(tmp_path / "run")
    before = dict(encoder.named_parameters())
    for name, after in model.network.encoder.named_parameters():
        torch.testing.assert_close(after, before[name], rtol=0.1, atol=0.05)
    assert any(not torch.equal(after, before[name]) for name, after in model.network.encoder.named_parameters())


def test_eager_reaches_every_step_and_a_run_that_is_not_there_is_told(place, tmp_path, monkeypatch):
    told = []

    def timed(*arguments, record=True, **named):
        told.append(record)
        raise ValueError("timed")

    def trained(options, *arguments):
        told.append(not options.eager)
        raise ValueError("trained")

    monkeypatch.setattr(duration, "Step", timed)
    monkeypatch.setattr(run, "train_as", trained)
    where = "--labels", place / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    for more in ((), ("--eager",)):
        ran = debiaspl("train", place / "photos", *where, "--resume", *more)
        said = ran.stderr.splitlines()
        assert said == [f"--resume found no run in {tmp_path / 'run'}, so a new one starts there.", "error: timed"]
    photos = survey(place / "photos", place / "labels.csv")
    for eager in (False, True):
        with pytest.raises(ValueError, match="trained"):
            run.train_photos(choose(photos, "cpu"), check_for(photos), tmp_path / f"{eager}", eager=eager)
    monkeypatch.setattr(duration, "estimate", lambda *_: 1.0)
    assert debiaspl("train", place / "photos", *where, "--eager").stderr == "error: trained\n"
    ran = debiaspl("train", place / "photos", *where, "--eager", "--resume")
    assert f"Resuming {tmp_path / 'run'}." in ran.output
    assert ran.stderr == "error: trained\n"
    assert told == [True, False, True, False, False, False]


def test_ctrl_c_at_any_time_says_how_to_go_on(place, tmp_path, monkeypatch):
    """Outside the training, which listens to it, or for the second time."""

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "train_as", stopped)
    monkeypatch.setattr("sys.argv", ["debiaspl", "train", "photos"])
    ran = train(place, tmp_path / "run")
    assert ran.exit_code == 130
    assert ran.stderr == "Stopped. Resume with: debiaspl train photos --resume\n"
    monkeypatch.setattr(survey_module, "list_folder", stopped)
    ran = train(place, tmp_path / "other")
    assert (ran.exit_code, ran.stderr) == (130, "Stopped.\n")
    assert not (tmp_path / "other").exists()


def test_an_algorithm_of_ones_own(place, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("from debiaspl.algorithms import FixMatch\n\n\nclass Mine(FixMatch): pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(duration, "estimate", lambda *_: 1.0)
    where = "--labels", place / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    ran = debiaspl("train", place / "photos", *where, "--set", "algorithm=mine.py:Mine", "--set", "steps=2")
    assert ran.exit_code == 0, ran.output
    assert json.loads((tmp_path / "run" / "config.json").read_text())["recipe"]["algorithm"]["name"] == "mine.py:Mine"


def test_the_log_of_the_baseline_tells_of_no_pseudo_labels(trained):
    lines = [json.loads(line) for line in (trained[1] / "supervised" / "log.jsonl").read_text().splitlines()]
    assert all(set(line) == {"step", "losses", "seconds"} and set(line["losses"]) == {"labeled"} for line in lines)
    assert "kept" in json.loads((trained[1] / "log.jsonl").read_text().splitlines()[-1])


def test_the_report_says_what_the_runs_were_measured_on(trained):
    page = (trained[1] / "report.html").read_text()
    assert "cross-checked labels" in page
    assert "One seed each: where the intervals overlap, the difference may be chance." in page


@pytest.mark.slow(seconds=20)
def test_a_labeled_photo_that_cannot_be_read_and_validation_do_not_end_a_run_of_folds(place, tmp_path):
    shutil.copytree(place / "photos", tmp_path / "photos")
    (tmp_path / "photos" / "02.jpg").write_bytes(b"")
    where = "--labels", place / "labels.csv", "--encoder", place / "encoder", "--device", "cpu"
    for number, more in enumerate((("--set", "stream=true"), ("--set", "validation=0.4"))):
        photos = place / "photos" if number else tmp_path / "photos"
        ran = debiaspl("train", photos, *where, "--out", tmp_path / f"run{number}", "--set", "steps=4", *more)
        assert ran.exit_code == 0, ran.output


def test_other_columns_reach_the_estimate_too(place, tmp_path):
    text = (place / "labels.csv").read_text().replace("file_name,label", "image,cls")
    (tmp_path / "other.csv").write_text(text)
    photos = survey(place / "photos", tmp_path / "other.csv", Columns("image", "cls"))
    assert sum(duration._few(choose(photos, "cpu")).labeled.counts()) == 6


@pytest.mark.parametrize(
    ("settings", "name", "folder"),
    [
        ([], "DebiasPL", "debiaspl-fold0"),
        (["correction=none"], "FixMatch", "fixmatch-fold0"),
        (["algorithm=uda", "correction=none"], "uda", "uda-fold0"),
        (["correction=alignment"], "FixMatch, alignment", "fixmatch-alignment-fold0"),
        (["algorithm=supervised", "correction=none"], "supervised", "supervised-fold0"),
    ],
)
def test_a_model_and_the_folders_of_its_folds_are_called_what_they_are(settings, name, folder):
    recipe = parse_settings(Recipe("photos"), settings)
    assert (run.name_of(recipe), run.fold_name(recipe, 0)) == (name, folder)


def test_the_folds_of_an_algorithm_in_a_file_of_its_own_stay_below_the_run():
    recipe = Recipe("photos", algorithm=Choice("/home/me/mine.py:Mine"), correction=Choice("none"))
    assert run.fold_name(recipe, 2) == "home-me-mine.py-mine-fold2"

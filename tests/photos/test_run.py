"""Photos with a network that learns its features: its folds, its baseline, and what goes on after a stop."""

import json
import re
import shutil

import pytest
import torch

pytest.importorskip("transformers")

from debiaspl._measures import Cells
from debiaspl.deploy import load_model
from debiaspl.encoders import load_encoder
from debiaspl.features.crosscheck import Candidate
from debiaspl.photos import check, run, survey as survey_module
from debiaspl.photos.check import Outcome, check_for
from debiaspl.photos.choose import choose
from debiaspl.photos.survey import survey
from debiaspl.training import Choice, Recipe, Run
from debiaspl.training.log import ProgressLine
from debiaspl.training.loop import RunOptions
from debiaspl.training.method import method_of
from debiaspl.training.settings import parse_settings
from debiaspl.training.step import Step
from tests.encoders.tiny import save
from tests.typed import debiaspl, done, refused, results_of, rows_of

TINY = [part for text in ("steps=4", "width=2", "labeled_batch=4", "unlabeled_batch=8") for part in ("--set", text)]


def photos_of(place, out):
    """What the command trains without an encoder."""
    return "train", place / "photos", "--labels", place / "labels.csv", "--device", "cpu", "--out", out, *TINY


def test_each_fold_is_a_run_and_a_stopped_training_goes_on_to_the_same_bits(place, tmp_path, monkeypatch):
    real, calls = run.train_as, []
    whole, out = tmp_path / "whole", tmp_path / "stopped"
    done(*photos_of(place, whole))
    results, folds = results_of(whole), [results_of(fold) for fold in sorted(whole.glob("check/debiaspl-fold*"))]
    assert sum(torch.tensor(fold["confusion"]) for fold in folds).tolist() == results["confusion"]
    assert len(folds) == results["check"]["folds"] == 3
    assert not list(whole.glob("check/*/model.safetensors"))
    page = (whole / "report.html").read_text()
    assert "cross-checked labels" in page

    def stopped(*arguments, **named):
        calls.append(arguments)
        if len(calls) == 6:
            raise ValueError("somebody pulled the plug.")
        return real(*arguments, **named)

    monkeypatch.setattr(run, "train_as", stopped)
    assert "somebody pulled the plug" in debiaspl(*photos_of(place, out)).output
    monkeypatch.setattr(run, "train_as", real)
    done(*photos_of(place, out), "--resume")
    for file in ("predictions.csv", "model.safetensors", "supervised/predictions.csv"):
        assert (out / file).read_bytes() == (whole / file).read_bytes(), file


def test_a_stopped_run_does_not_go_on_with_other_labels(place, tmp_path):
    (tmp_path / "user").mkdir()
    shutil.copytree(place / "photos", tmp_path / "user" / "photos")
    table = tmp_path / "user" / "labels.csv"
    shutil.copy(place / "labels.csv", table)
    asked = photos_of(tmp_path / "user", tmp_path / "run")
    done(*asked)
    for part in ("run", "run/supervised"):  # as if it was stopped after the folds
        (tmp_path / part / "results.json").unlink()
    with table.open("a") as file:
        file.write("20.jpg,flower\n")
    assert "labels have changed" in refused(*asked, "--resume")


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
    ran = done("train", tmp_path / "photos", "--device", "cpu", "--out", out, "--set", "steps=3", *batches)
    assert "A small network, at 24 x 24 pixels, 3 steps in 2 runs. 2 labels are held out to check with." in ran
    steps = [parts[-1] for parts in said if parts[0] == "photos step 3/3"]
    assert steps == ["0:00 left, run 1 of 2 (supervised)", "0:00 left, run 2 of 2 (debiaspl)"]
    results = results_of(out)
    assert (results["labels"], results["test"], results["unlabeled"]) == ([4, 4], 2, 22)
    told = {row["file_name"]: row["truth"] for row in rows_of(out / "predictions.csv") if row["truth"]}
    assert sorted(told.values()) == ["heron", "owl"]
    assert all(name.startswith(f"{label}/") for name, label in told.items())
    assert not (out / "check").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["resnet", "vit"])
def test_what_a_gpu_would_do_fine_tunes_the_encoder(kind, place, tmp_path):
    """A step or two of it, on a CPU."""
    folder = tmp_path / kind
    save(kind, folder)
    encoder = load_encoder(str(folder))
    photos = survey(place / "photos", place / "labels.csv")
    chosen = choose(photos, "cuda", encoder, frozen=False)
    few = ["steps=2", "labeled_batch=4", "unlabeled_batch=6", "learning_rate=0.001", "seed=1"]
    outcome = run.train_networks(
        parse_settings(chosen, few), check_for(photos), tmp_path / "run", RunOptions(device="cpu")
    )
    assert outcome.results["mode"] == "fast"
    model = load_model(tmp_path / "run")
    before = dict(encoder.named_parameters())
    for name, after in model.network.encoder.named_parameters():
        torch.testing.assert_close(after, before[name], rtol=0.1, atol=0.05)
    assert any(not torch.equal(after, before[name]) for name, after in model.network.encoder.named_parameters())


def test_uneven_classes_are_left_to_the_frozen_fit(place, tmp_path):
    """What it estimates of them, fine-tuning does not know, whatever the labels say."""
    photos = survey(place / "photos", place / "labels.csv")
    chosen = parse_settings(choose(photos, "cpu"), ["steps=1", "width=2", "labeled_batch=4", "unlabeled_batch=8"])
    none_right = Candidate("debiaspl", Cells.of([0, 0, 1, 1], [1, 1, 0, 0], 2), frozenset())

    def fit(weight):
        shares = {"shares": {"weight": weight}}
        return lambda out: Outcome((none_right,), check_for(photos), none_right, shares)

    def used(weight):
        place = tmp_path / str(weight)
        options = RunOptions(device="cpu")
        outcome = run.train_networks(chosen, check_for(photos), place, options, None, fit(weight))
        return outcome.chosen.name, check.handed_out(outcome, place)

    assert used(0.0)[0] == "debiaspl"
    name, words = used(0.7)
    assert name == "frozen"
    assert "certainly" in words


@pytest.mark.slow
def test_fine_tuning_begins_with_the_frozen_fit_and_a_stopped_one_goes_on_to_the_same_bits(
    place, tmp_path, monkeypatch
):
    """Stopped in a fold, after its first checkpoint; and the model of the run is as any other."""
    where = "train", place / "photos", "--labels", place / "labels.csv", "--encoder", place / "encoder", "--fine-tune"
    few = "steps=4", "checkpoint_every=2", "labeled_batch=4", "unlabeled_batch=6"
    for module in ("begin", "run"):
        monkeypatch.setattr(f"debiaspl.features.{module}.enough_steps", lambda rows: 20)
    asked = *where, "--device", "cpu", *(part for text in few for part in ("--set", text))
    whole, out = tmp_path / "whole", tmp_path / "stopped"
    ran = done(*asked, "--out", whole)
    assert re.findall(r"^(supervised|frozen|debiaspl) ", ran, re.M) == ["supervised", "frozen", "debiaspl"]
    assert {Run(whole / folder).recipe().first_classifier for folder in ("", "supervised")} == {"fit"}
    assert "the encoder as it is" in (whole / "report.html").read_text()
    calls = []
    original = Step.__call__

    def stopping(step, number):
        calls.append(step.task.labeled.is_encoded)
        if calls.count(False) == 19:  # of image steps: after four runs of the baseline, in the first fold
            raise KeyboardInterrupt
        original(step, number)

    monkeypatch.setattr(Step, "__call__", stopping)
    assert debiaspl(*asked, "--out", out).exit_code == 130
    monkeypatch.setattr(Step, "__call__", original)
    done(*asked, "--out", out, "--resume")
    for file in ("predictions.csv", "model.safetensors", "supervised/predictions.csv", "frozen/predictions.csv"):
        assert (out / file).read_bytes() == (whole / file).read_bytes(), file
    done("predict", out, place / "photos", "--out", tmp_path / "predicted.csv")
    pytest.importorskip("onnxscript")
    done("export", out, tmp_path / "model.onnx")


def test_eager_reaches_every_step_and_a_run_that_is_not_there_is_told(place, tmp_path, monkeypatch):
    recorded = []

    def trained(options, *arguments):
        recorded.append(not options.eager)
        raise ValueError("trained")

    monkeypatch.setattr(run, "train_as", trained)
    where = "train", place / "photos", "--labels", place / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    new = f"--resume found no run in {tmp_path / 'run'}, so a new one starts there."
    assert debiaspl(*where, "--resume").stderr.splitlines() == [new, "error: trained"]
    ran = debiaspl(*where, "--eager", "--resume")
    assert f"Resuming {tmp_path / 'run'}." in ran.output
    assert ran.stderr == "error: trained\n"
    assert recorded == [True, False]


def test_ctrl_c_at_any_time_says_how_to_go_on(place, tmp_path, monkeypatch):
    """Outside the training, which listens to it, or for the second time."""

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "train_as", stopped)
    monkeypatch.setattr("sys.argv", ["debiaspl", "train", "photos"])
    ran = debiaspl(*photos_of(place, tmp_path / "run"))
    assert ran.exit_code == 130
    assert ran.stderr == "Stopped. Resume with: debiaspl train photos --resume\n"
    monkeypatch.setattr(survey_module, "list_folder", stopped)
    ran = debiaspl(*photos_of(place, tmp_path / "other"))
    assert (ran.exit_code, ran.stderr) == (130, "Stopped.\n")
    assert not (tmp_path / "other").exists()


def test_an_algorithm_of_ones_own(place, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("from debiaspl.algorithms import FixMatch\n\n\nclass Mine(FixMatch): pass\n")
    monkeypatch.chdir(tmp_path)
    where = "--labels", place / "labels.csv", "--device", "cpu", "--out", tmp_path / "run"
    done("train", place / "photos", *where, "--set", "algorithm=mine.py:Mine", "--set", "steps=2")
    assert json.loads((tmp_path / "run" / "config.json").read_text())["recipe"]["algorithm"]["name"] == "mine.py:Mine"


def test_the_folders_of_folds_are_called_what_they_are_and_stay_below_the_run():
    recipe = parse_settings(Recipe("photos"), ["correction=alignment"])
    assert (method_of(recipe), run.fold_name(recipe, 0)) == ("fixmatch+alignment", "fixmatch+alignment-fold0")
    recipe = Recipe("photos", algorithm=Choice("/home/me/mine.py:Mine"), correction=Choice("none"))
    assert run.fold_name(recipe, 2) == "home-me-mine.py-mine-fold2"

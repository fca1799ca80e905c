"""``debiaspl pretrain``: features without labels, of folders of every kind and of known sets."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from debiaspl.cli.pretrain import _loss_of
from debiaspl.data.open import open_data
from debiaspl.models import trained_network
from debiaspl.photos import run
from debiaspl.photos import survey as survey_module
from debiaspl.photos.choose import choose
from debiaspl.photos.start import choose_start
from debiaspl.photos.survey import survey, survey_for_start
from debiaspl.training import Run
from tests import forked
from tests.photos.digits import write_digits
from tests.photos.user import debiaspl
from tests.processes import started
from tests.training.test_stream import stop_at

SHORT = ("--set", "steps=8", "--set", "network.width=4", "--set", "log_every=4", "--set", "checkpoint_every=2")


def pretrain(data, out, *more):
    ran = debiaspl("pretrain", data, "--out", out, "--device", "cpu", *SHORT, *more)
    assert ran.exit_code == 0, ran.output
    return ran.output.splitlines()


def results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text())


def features(folder: Path) -> dict[str, torch.Tensor]:
    weights = load_file(folder / "model.safetensors")
    return {name: value for name, value in weights.items() if not name.startswith("head.")}


def same(one: Path, other: Path) -> bool:
    ours, theirs = features(one), features(other)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("flat") / "photos")


@pytest.fixture(scope="module")
def start(flat):
    """A start of a flat folder without labels, and what was said."""
    return flat.parent / "start", pretrain(flat, flat.parent / "start")


def test_the_first_step_is_told_as_one():
    log = [{"step": step, "losses": {"moco": 2.0}} for step in (1, 8)]
    assert _loss_of(log) == "The loss went from 2.00, in the first step, to 2.00 at the end."


def test_a_flat_folder_without_labels(flat, start):
    out, said = start
    assert said[0] == "60 images without labels."
    assert said[1].startswith("A small network, at 8 x 8 pixels, moco, 8 steps of 30 images. About ")
    assert said[2].startswith("The loss went from ")
    assert said[3] == f"The start is in {out}; the report is {out / 'report.html'}"
    assert said[-2:] == [
        f"  debiaspl label {flat} --classes 'NAME,OTHER NAME'",
        f"  debiaspl train {flat} --device cpu --set start={out}",
    ]
    found = results(out)
    assert (found["labels"], found["unlabeled"], found["test"]) == ([], 60, 0)
    assert not {"accuracy", "recall", "worst_recall", "confusion"} & set(found)
    assert "nothing" in found["evaluated"]
    assert not (out / "predictions.csv").exists()
    assert not any(name.startswith("head.") for name in load_file(out / "model.safetensors"))


def test_a_nested_folder_where_sub_folders_are_not_classes(tmp_path):
    photos = write_digits(tmp_path / "photos", 30)
    write_digits(photos / "2019" / "june", 20)
    (photos / "2020").mkdir()  # empty: no class could have this name
    said = pretrain(photos, tmp_path / "start")
    assert said[0] == "50 images without labels."
    assert results(tmp_path / "start")["unlabeled"] == 50


def test_folders_that_are_taken_for_classes_are_named_and_can_be_left_alone(tmp_path):
    """Nothing is learned from the labels: without them, the features are the same bits."""
    photos = write_digits(tmp_path / "photos", labeled=20, folders="unlabeled")
    said = pretrain(photos, tmp_path / "start")
    assert said[0].startswith("60 images, 20 labels, 2 classes; ")
    assert said[0].endswith(
        "The folders are used as classes (even, odd); if they are not classes: --no-labels. Labels are not used for "
        "training, only to measure the features at the end."
    )
    found = results(tmp_path / "start")
    assert found["unlabeled"] == 60  # labeled ones are learned from too, without their labels
    assert sum(found["labels"]) + found["test"] == 20
    assert found["check"] == {"kind": "held-out", "folds": 3, "labels": found["test"]}
    assert found["evaluated"].startswith("nearest class mean of the labeled images; ")
    assert f"is right for {100 * found['accuracy']:.1f} % of {found['test']} held-out labels" in said[3]
    assert said[-1] == f"  debiaspl train {photos} --device cpu --set start={tmp_path / 'start'}"
    plain = pretrain(photos, tmp_path / "plain", "--no-labels")
    assert plain[0] == "60 images without labels."
    assert "accuracy" not in results(tmp_path / "plain")
    assert same(tmp_path / "start", tmp_path / "plain")


def test_labels_csv_also_one_without_a_label_or_with_one_of_each_class(tmp_path):
    photos = write_digits(tmp_path / "photos", labeled=12)
    said = pretrain(photos, tmp_path / "start")
    assert said[0].startswith("60 images, 12 labels, 2 classes; ")
    assert "folders" not in said[0]
    assert "held-out labels" in said[3]
    (photos / "labels.csv").write_text("file_name,label\n000.png,even\n001.png,odd\n")
    said = pretrain(photos, tmp_path / "single")
    assert said[3] == "No class has two labels, so the features cannot be measured."
    assert results(tmp_path / "single")["check"]["kind"] == "none"
    for number, rows in enumerate(("", "000.png,\n", "000.png,even\n")):
        (photos / "labels.csv").write_text(f"file_name,label\n{rows}")
        assert pretrain(photos, tmp_path / f"none{number}")[0] == "60 images without labels."
    (photos / "labels.csv").write_text("file_name,label\ngone.png,even\n")
    assert "gone.png" in debiaspl("pretrain", photos, "--out", tmp_path / "bad").output
    assert not (tmp_path / "bad").exists()


def test_photos_that_cannot_be_read_are_left_out_and_streamed_ones_work(tmp_path):
    photos = write_digits(tmp_path / "photos", 30)
    (photos / "007.png").write_bytes(b"damaged")
    pretrain(photos, tmp_path / "start")
    assert results(tmp_path / "start")["unlabeled"] == 29
    pretrain(photos, tmp_path / "streamed", "--set", "stream=true", "--workers", 0)
    assert results(tmp_path / "streamed")["skipped"] == ["007.png"]


def test_a_stopped_start_goes_on_to_the_same_bits(flat, start, tmp_path, monkeypatch):
    stop_at(monkeypatch, 5)
    ran = debiaspl("pretrain", flat, "--out", tmp_path / "run", "--device", "cpu", *SHORT)
    assert "stopped for the test" in ran.output
    monkeypatch.undo()
    assert "already contains a run" in debiaspl("pretrain", flat, "--out", tmp_path / "run", *SHORT).output
    said = pretrain(flat, tmp_path / "run", "--resume")
    assert said[1] == f"Resuming {tmp_path / 'run'}."
    assert same(tmp_path / "run", start[0])
    assert [record["losses"] for record in Run(tmp_path / "run").log()] == [
        record["losses"] for record in Run(start[0]).log()
    ]
    weights = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    pretrain(flat, tmp_path / "run", "--resume")  # has ended
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == weights


def test_photos_may_be_labeled_while_a_start_is_stopped(tmp_path, monkeypatch, start):
    photos = write_digits(tmp_path / "photos")
    stop_at(monkeypatch, 5)
    debiaspl("pretrain", photos, "--out", tmp_path / "run", "--device", "cpu", *SHORT)
    monkeypatch.undo()
    (photos / "labels.csv").write_text("file_name,label\n000.png,even\n001.png,odd\n")
    assert pretrain(photos, tmp_path / "run", "--resume")[0] == "60 images without labels."
    assert same(tmp_path / "run", start[0])


def test_the_folder_that_nobody_named_is_found_again(tmp_path, monkeypatch):
    photos = write_digits(tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    stop_at(monkeypatch, 5)
    debiaspl("pretrain", photos, "--device", "cpu", *SHORT)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    (photos / "labels.csv").write_text("file_name,label\n000.png,even\n001.png,odd\n")
    ran = debiaspl("pretrain", photos, "--device", "cpu", *SHORT, "--resume")
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / "runs" / "photos-pretrain" / "model.safetensors").is_file()


def test_a_run_that_goes_on_does_without_its_start(tmp_path, monkeypatch, start):
    photos = write_digits(tmp_path / "photos", labeled=12)
    shutil.copytree(start[0], tmp_path / "start")
    asked = "train", photos, "--device", "cpu", "--set", f"start={tmp_path / 'start'}", "--set", "steps=4"
    every = "--set", "checkpoint_every=1", "--out", tmp_path / "run"
    real, calls = run.train_as, []

    def stopping(*arguments):
        calls.append(arguments)
        if len(calls) == 8:  # the last run: all others have ended
            stop_at(monkeypatch, 2)
        return real(*arguments)

    monkeypatch.setattr(run, "train_as", stopping)
    assert "stopped for the test" in debiaspl(*asked, *every).output
    monkeypatch.undo()
    shutil.rmtree(tmp_path / "start")
    ran = debiaspl(*asked, *every, "--resume")
    assert ran.exit_code == 0, ran.output
    assert "was not found" in debiaspl(*asked, "--out", tmp_path / "other", "--resume").output


@pytest.mark.slow
def test_a_killed_start_goes_on_to_the_same_bits(flat, tmp_path):
    steps = "--set", "steps=300", "--set", "network.width=4", "--set", "checkpoint_every=10"
    whole, killed = (
        ["pretrain", str(flat), "--out", str(tmp_path / name), *steps, "--resume"] for name in ("whole", "killed")
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    typed = [sys.executable, "-m", "debiaspl", *killed]
    with started(typed, env=environment, stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "killed").glob("checkpoint/step-*0.safetensors")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "killed" / "results.json").exists()
    for command in (whole, killed):
        ran = forked.command(*command, environment=environment)
        assert ran.returncode == 0, ran.stderr
    assert same(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.parametrize(
    ("command", "more"),
    [("predict", ("--out", "p.csv")), ("next", ("--out", "n.csv")), ("export", ("--onnx", "m.onnx")), ("audit", ())],
)
def test_what_needs_a_classifier_says_that_there_is_none_and_what_to_do(flat, start, command, more):
    photos = () if command in ("export", "audit") else (flat,)
    ran = debiaspl(command, start[0], *photos, *more)
    assert ran.exit_code == 1
    assert "has learned features without labels" in ran.output
    assert f"debiaspl train PHOTOS --set start={start[0]}" in ran.output


def test_the_report_of_a_start_without_labels_alone_and_beside_another_run(flat, start, tmp_path):
    page = (start[0] / "report.html").read_text()
    assert "has learned features of 60 images without labels" in page
    assert debiaspl("report", start[0], "--out", tmp_path / "again.html").exit_code == 0
    photos = write_digits(tmp_path / "photos", labeled=12)
    ran = debiaspl(
        "train", photos, "--device", "cpu", "--set", f"start={start[0]}", "--out", tmp_path / "run", *SHORT[:2]
    )
    assert ran.exit_code == 0, ran.output
    both = debiaspl("report", start[0], tmp_path / "run", "--out", tmp_path / "both.html")
    assert both.exit_code == 0, both.output


def test_a_run_on_photos_takes_network_and_size_from_its_start(flat, start, tmp_path, monkeypatch):
    photos = write_digits(tmp_path / "photos", labeled=12)
    monkeypatch.setattr(survey_module, "_side", lambda path: 20)  # larger photos than those of the start
    asked = "train", photos, "--device", "cpu", "--set", f"start={start[0]}", "--set", "steps=2"
    ran = debiaspl(*asked, "--out", tmp_path / "run")
    assert ran.exit_code == 0, ran.output
    assert "A small network, at 8 x 8 pixels, 2 steps." in ran.output
    recipe = json.loads((tmp_path / "run" / "config.json").read_text())["recipe"]
    assert recipe["network"] == {"name": "small", "settings": {"width": 4}}
    assert recipe["start"] == str(start[0])
    digest = results(tmp_path / "run")["start"]
    parts = [tmp_path / "run" / "supervised", *(tmp_path / "run" / "check").iterdir()]
    assert len(parts) == 7
    assert {results(part)["start"] for part in parts} == {digest}
    larger = debiaspl(*asked, "--set", "image_size=12", "--out", tmp_path / "larger")
    assert "at 12 x 12 pixels" in larger.output


def test_a_start_that_does_not_fit_is_refused_before_anything_is_written(start, tmp_path):
    photos = write_digits(tmp_path / "photos", labeled=12)
    pretrain("digits", tmp_path / "grey")
    for settings, message in (
        ((f"start={start[0]}", "network.width=8"), "does not fit this network: it has trained small width=4."),
        ((f"start={start[0]}", "network=resnet9"), "does not fit this network: it has trained small width=4."),
        ((f"start={tmp_path / 'grey'}",), "trained with images of 1 channel, and photos have 3."),
        ((f"start={tmp_path / 'gone'}",), "was not found"),
    ):
        more = [part for one in settings for part in ("--set", one)]
        ran = debiaspl("train", photos, "--device", "cpu", "--out", tmp_path / "run", *more)
        assert ran.exit_code == 1
        assert message in ran.output
        assert not (tmp_path / "run").exists()


def test_an_encoder_and_a_start_are_one_too_many(start, tmp_path):
    pytest.importorskip("transformers")
    from tests.encoders.tiny import save

    save("resnet", tmp_path / "encoder")
    photos = write_digits(tmp_path / "photos", labeled=12)
    asked = "--encoder", tmp_path / "encoder", "--set", f"start={start[0]}", "--out", tmp_path / "run"
    ran = debiaspl("train", photos, "--device", "cpu", *asked)
    assert "or with the start" in ran.output
    assert not (tmp_path / "run").exists()


def test_what_train_chooses_fits_what_pretrain_has_chosen(tmp_path):
    """On a GPU too: the user names no network."""
    photos = write_digits(tmp_path / "photos", labeled=12)
    for device in ("cpu", "cuda"):
        first = choose_start(survey_for_start(photos, None), device)
        network = first.network.build("network", num_classes=2, channels=3)
        told = trained_network_of(first, tmp_path / device, network)
        chosen = choose(survey(photos, None), device, start=told)
        assert (chosen.network, chosen.image_size) == (first.network, first.image_size)


def trained_network_of(recipe, folder, network):
    from debiaspl.training.results import about
    from debiaspl.training.tasks import task_of

    with Run(folder).begin(recipe):
        Run(folder).finish(network.state_dict(), about(recipe, task_of(recipe).unlabeled), None, {})
    return trained_network(str(folder))


def test_a_known_set_says_the_command_that_comes_next(tmp_path):
    said = pretrain("digits", tmp_path / "start")
    count = len(open_data("digits").train)
    assert said[0] == f"{count:,} images of digits. Labels are not used for training."
    assert said[1].startswith("A small network, at 8 x 8 pixels, moco, 8 steps of 64 images. About ")
    found = results(tmp_path / "start")
    assert found["unlabeled"] == count
    assert f"of {sum(found['labels'])} labels, is right for" in said[3]
    assert said[3].endswith("test images: this measures the features only.")
    command = (
        f"debiaspl train --recipe digits-10 --set start={tmp_path / 'start'} --set network=small --set network.width=4"
    )
    assert said[-1] == f"  {command}"
    ran = debiaspl(*command.split()[1:], "--set", "steps=2", "--out", tmp_path / "run")
    assert ran.exit_code == 0, ran.output
    assert "start" in results(tmp_path / "run")


def test_what_is_refused(tmp_path, flat, monkeypatch):
    refused = {
        ("nowhere",): "nowhere is neither a folder nor a known set.",
        ("digits", "--no-labels"): "are for a folder of photos",
        ("digits", "--set", "algorithm=fixmatch"): "fixmatch learns from labels, and pretrain learns without.",
        (flat, "--root", tmp_path): "out.",
        (flat, "--timeout", "5"): "out.",
        (flat, "--set", "validation=0.5"): "there are no labels to hold out",
        (flat, "--set", "evaluate_every=2"): "no image has a label to evaluate with",
        (tmp_path,): "contains no image",
    }
    monkeypatch.chdir(tmp_path)
    for arguments, message in refused.items():
        ran = debiaspl("pretrain", *arguments, "--out", tmp_path / "run", "--device", "cpu")
        assert ran.exit_code == 1, arguments
        assert message in ran.output
        assert not (tmp_path / "run").exists()
    few = write_digits(tmp_path / "few", 5)
    assert "holds 5 images, expected 10 or more" in debiaspl("pretrain", few).output


@pytest.mark.slow(seconds=20)
def test_two_ranks_train_one_start(flat, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "debiaspl"]
    norm = "--set", "synchronise_norm=true"
    typed = ["pretrain", "digits", "--out", str(tmp_path / "run"), "--device", "cpu", *SHORT, *norm]
    ran = forked.torchrun([*torchrun, *typed], environment=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("images of digits.") == ran.stdout.count("The start is in ") == 1
    assert results(tmp_path / "run")["timing"]["processes"] == 2
    pretrain("digits", tmp_path / "alone", *norm)
    pretrain("digits", tmp_path / "other", *norm, "--set", "seed=1")
    ours, alone, other = (features(tmp_path / name) for name in ("run", "alone", "other"))
    for name, value in alone.items():
        if value.is_floating_point():
            torch.testing.assert_close(ours[name], value, rtol=0, atol=1e-4)
    assert any((other[name] - value).abs().max() > 1e-2 for name, value in alone.items() if value.is_floating_point())
    photos = forked.command("pretrain", flat, environment={**environment, "RANK": "0", "WORLD_SIZE": "2"})
    assert photos.returncode == 1
    assert "training on photos runs in one process" in photos.stderr

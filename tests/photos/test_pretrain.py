"""``debiaspl pretrain``: features without labels, of folders of every kind and of known sets."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from debiaspl.cli.pretrain import _loss_of
from debiaspl.data.open import open_data
from debiaspl.training import Run
from tests import forked
from tests.photos.digits import write_digits
from tests.photos.starts import SHORT, features, pretrain, results, same
from tests.photos.user import debiaspl
from tests.processes import started
from tests.training.test_stream import stop_at


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
        ("nowhere",): "nowhere is neither a folder nor a known image set.",
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

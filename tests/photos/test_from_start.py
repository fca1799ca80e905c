"""What is done with a start: runs that begin with it, and commands that need more than features."""

import json
import shutil

import pytest

from debiaspl.models import trained_network
from debiaspl.photos import run, survey as survey_module
from debiaspl.photos.choose import choose, choose_start
from debiaspl.photos.survey import survey, survey_for_start
from debiaspl.recipes import recipe
from debiaspl.training import Run, train
from debiaspl.training.evaluate import about
from debiaspl.training.tasks import task_of
from tests.photos.digits import write_digits
from tests.photos.starts import SHORT
from tests.training.tiny import stop_at
from tests.typed import debiaspl, done, refused, results_of


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
    done(*asked, *every, "--resume")
    assert "was not found" in debiaspl(*asked, "--out", tmp_path / "other", "--resume").output


@pytest.mark.parametrize(
    ("command", "more"),
    [("predict", ("--out", "p.csv")), ("next", ("--out", "n.csv")), ("export", ("m.onnx",)), ("audit", ())],
)
def test_what_needs_a_classifier_says_that_there_is_none_and_what_to_do(flat, start, command, more):
    photos = () if command in ("export", "audit") else (flat,)
    ran = refused(command, start[0], *photos, *more)
    assert "without labels" in ran
    assert f"debiaspl train PHOTOS --set start={start[0]}" in ran


def test_the_report_of_a_start_without_labels_alone_and_beside_another_run(flat, start, tmp_path):
    page = (start[0] / "report.html").read_text()
    assert "has learned features of 60 images without labels" in page
    assert debiaspl("report", start[0], "--out", tmp_path / "again.html").exit_code == 0
    photos = write_digits(tmp_path / "photos", labeled=12)
    done("train", photos, "--device", "cpu", "--set", f"start={start[0]}", "--out", tmp_path / "run", *SHORT[:2])
    done("report", start[0], tmp_path / "run", "--out", tmp_path / "both.html")


def test_a_run_on_photos_takes_network_and_size_from_its_start(flat, start, tmp_path, monkeypatch):
    photos = write_digits(tmp_path / "photos", labeled=12)
    monkeypatch.setattr(survey_module, "_side", lambda path: 20)  # larger photos than those of the start
    asked = "train", photos, "--device", "cpu", "--set", f"start={start[0]}", "--set", "steps=2"
    assert "A small network, at 8 x 8 pixels, 2 steps in" in done(*asked, "--out", tmp_path / "run")
    recipe = json.loads((tmp_path / "run" / "config.json").read_text())["recipe"]
    assert recipe["network"] == {"name": "small", "settings": {"width": 4}}
    assert recipe["start"] == str(start[0])
    digest = results_of(tmp_path / "run")["start"]
    parts = [tmp_path / "run" / "supervised", *(tmp_path / "run" / "check").iterdir()]
    assert len(parts) == 7
    assert {results_of(part)["start"] for part in parts} == {digest}
    larger = debiaspl(*asked, "--set", "image_size=12", "--out", tmp_path / "larger")
    assert "at 12 x 12 pixels" in larger.output


def test_a_start_that_does_not_fit_is_refused(start, tmp_path):
    photos = write_digits(tmp_path / "photos", labeled=12)
    train(recipe("digits-10", method="moco").changed(steps=1), tmp_path / "grey")
    for settings, message in (
        ((f"start={start[0]}", "network.width=8"), "It has trained small width=4"),
        ((f"start={start[0]}", "network=resnet9"), "It has trained small width=4"),
        ((f"start={tmp_path / 'grey'}",), "trained with images of 1 channel, and photos have 3."),
        ((f"start={tmp_path / 'gone'}",), "was not found"),
    ):
        more = [part for one in settings for part in ("--set", one)]
        assert message in refused("train", photos, "--device", "cpu", "--out", tmp_path / "run", "--overwrite", *more)
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
        with Run(tmp_path / device).begin(first):
            Run(tmp_path / device).finish(network.state_dict(), about(first, task_of(first).unlabeled), None, {})
        chosen = choose(survey(photos, None), device, start=trained_network(str(tmp_path / device)))
        assert (chosen.network, chosen.image_size) == (first.network, first.image_size)

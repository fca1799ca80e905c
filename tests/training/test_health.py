"""Features are measured on the way: the same sample, nothing disturbed, and the same in every kind of run."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from debiaspl.algorithms import STARTS
from debiaspl.data import FewLabels, LazyImages, Task, load
from debiaspl.data.open import read_place, with_test_set
from debiaspl.data.packed import pack_files
from debiaspl.models import scale
from debiaspl.training import Recipe, RunError, train
from debiaspl.training.group import ALONE
from debiaspl.training.health import Health, Sample, interval
from debiaspl.training.step import Step
from tests.data.photos import write_folder
from tests.ranks import on_ranks
from tests.reference import spread as slow
from tests.training.test_stream import recipe as of_photos
from tests.training.test_stream import stop_at
from tests.training.tiny import EAGER, TINY, changed, log, outcome, results

START = changed(TINY, "algorithm=moco", "correction=none", "memory=32", "per_class=2")
CPU = torch.device("cpu")
NAMES = {"rank", "spread", "alignment", "overlap", "uniformity", "neighbours"}


def made(recipe: Recipe = START, per_class: int = 2) -> Step:
    return Step(recipe, Task.of(load("digits"), FewLabels(per_class), recipe.seed), CPU)


def test_twenty_times_where_features_alone_are_learned_and_never_elsewhere():
    assert interval(replace(START, steps=600), learns_labels=False) == 30
    assert interval(replace(START, steps=39), learns_labels=False) == 2
    assert interval(START, learns_labels=False) == 1
    assert interval(START, learns_labels=True) == 0
    assert interval(replace(START, health_every=-1), learns_labels=False) == 0
    assert interval(replace(START, health_every=5), learns_labels=True) == 5
    with pytest.raises(ValueError, match="health_every is -2, expected a number of steps, 0 to let"):
        changed(TINY, "health_every=-2")


def test_it_is_measured_before_the_first_step_at_its_steps_and_after_the_last(tmp_path):
    train(changed(START, "health_every=5"), tmp_path / "run")
    lines = log(tmp_path / "run")
    assert [line["step"] for line in lines] == [0, 5, 10, 12]
    assert all(line["health"].keys() == NAMES for line in lines)
    assert all(math.isfinite(value) for line in lines for value in line["health"].values())
    assert lines[0]["losses"] == {}
    told = results(tmp_path / "run")["health"]
    assert told == {"first": {"step": 0, **lines[0]["health"]}, "last": {"step": 12, **lines[-1]["health"]}}
    assert lines[0]["health"] != lines[-1]["health"]
    assert not any("health" in line for line in log_of(tmp_path / "never", "health_every=-1"))


def log_of(folder: Any, *settings: str) -> list[dict[str, Any]]:
    train(changed(START, *settings), folder)
    return log(folder)


@pytest.mark.parametrize("recipe", [START, EAGER], ids=["moco", "fixmatch"])
def test_no_bit_of_the_training_changes(tmp_path, recipe):
    train(changed(recipe, "health_every=-1"), tmp_path / "never")
    train(changed(recipe, "health_every=1"), tmp_path / "always")
    never, always = outcome(tmp_path / "never"), outcome(tmp_path / "always")
    assert never[0] == always[0]
    assert never[3] == always[3]


def test_nothing_is_left_behind():
    step = made()
    for number in range(3):
        step(number)
    health = Health(step, ALONE, [])
    before, drawn = {name: value.clone() for name, value in step.state().items()}, torch.get_rng_state()
    first = health.look({"step": 3, "losses": {"contrast": 1.0}})["health"]
    assert torch.equal(torch.get_rng_state(), drawn)
    for name, value in step.state().items():
        assert torch.equal(value, before[name]), name
    assert health.look({"step": 4, "losses": {"contrast": 1.0}})["health"] == first  # the same sample, the same views


def test_the_numbers_are_those_of_the_averaged_model_on_the_sample():
    step = made()
    step(0)
    sample = Sample(step)
    found = sample.measured(step.average.model)
    chosen = torch.randperm(len(step.task.unlabeled), generator=torch.Generator().manual_seed(0))[:1000].sort().values
    with torch.no_grad():
        features = step.average.model.embed(scale(step.task.unlabeled.images[chosen])).double()
        known = step.average.model.embed(scale(step.task.labeled.images)).double().tolist()
    some = features.tolist()
    assert found["rank"] == pytest.approx(slow.effective_rank(some), rel=1e-4)
    assert found["spread"] == pytest.approx(slow.spread(some), rel=1e-4)
    assert found["neighbours"] == slow.nearest_neighbour_accuracy(known, step.task.labeled.labels.tolist())
    # Two views of an image are nearer to each other than views of different images, and are not the same.
    assert 0.1 < found["overlap"] < 1
    assert found["alignment"] > 0


def test_another_seed_has_another_sample():
    ids = {seed: Sample(made(replace(START, seed=seed)))._plain.ids for seed in (0, 1)}
    assert len(ids[0]) == len(ids[1]) == 1000
    assert ids[0] != ids[1]


def test_one_label_a_class_tells_no_neighbours(tmp_path):
    assert {line["health"]["neighbours"] for line in log_of(tmp_path / "run", "per_class=1")} == {None}


def test_test_images_are_not_looked_at():
    step = made()
    known = {"labeled": step.task.labeled, "unlabeled": step.task.unlabeled, "has_labels": True}
    step.task = SimpleNamespace(**known)  # there are no test images
    assert Health(step, ALONE, []).look({"step": 0, "losses": {}})["health"].keys() == NAMES


def test_a_stopped_run_writes_the_same_log(tmp_path, monkeypatch):
    train(START, tmp_path / "whole")
    stop_at(monkeypatch, 6)
    with pytest.raises(RunError, match="stopped for the test"):
        train(START, tmp_path / "run")
    monkeypatch.undo()
    train(START, tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")
    assert [line["step"] for line in log(tmp_path / "run")] == list(range(13))


@pytest.mark.parametrize("name", STARTS)
def test_features_that_are_not_numbers_stop_the_run(name):
    step = made(changed(TINY, f"algorithm={name}", "correction=none"))
    for parameter in step.average.model.parameters():
        parameter.data.fill_(math.nan)
    with pytest.raises(RunError, match="features that are not finite numbers, so the run has stopped"):
        Health(step, ALONE, []).look({"step": 0, "losses": {}})


class Counted:
    """Files, and how often each was read."""

    def __init__(self, files: Any) -> None:
        self.files, self.read_so_far = files, list[int]()

    def __len__(self) -> int:
        return len(self.files)

    def read(self, position: int) -> bytes:
        self.read_so_far.append(position)
        content: bytes = self.files.read(position)
        return content


def test_files_are_read_once_and_those_that_are_bad_left_out(tmp_path):
    data = write_folder(tmp_path / "data")
    bad = data / "china" / "0003.jpg"
    bad.write_bytes(b"\xff\xd8\xff broken")
    recipe = replace(of_photos(data, stream=True), algorithm=START.algorithm, correction=START.correction)
    images = read_place(data, 16)
    assert isinstance(images.images, LazyImages)
    counted = Counted(images.images.files)
    images = replace(images, images=replace(images.images, files=counted))
    step = Step(recipe, Task.of(with_test_set(images), FewLabels(2), 0), CPU)
    counted.read_so_far.clear()
    health = Health(step, ALONE, [])
    first = health.look({"step": 0, "losses": {}})["health"]
    reads = len(counted.read_so_far)
    assert reads <= 2 * len(images) + 10  # whole, and once more for the crops
    assert health.look({"step": 1, "losses": {}})["health"] == first
    assert len(counted.read_so_far) == reads
    assert all(math.isfinite(first[name]) for name in NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "packed"])
def test_sets_that_stay_on_the_disk_resume_to_the_same_log(tmp_path, monkeypatch, kind):
    data = write_folder(tmp_path / "data")
    if kind == "packed":
        pack_files(read_place(data, 16), tmp_path / "packed")
        data = tmp_path / "packed"
    parts = {"algorithm": START.algorithm, "correction": START.correction}
    recipe = replace(of_photos(data, stream=kind == "folder"), **parts)
    train(recipe, tmp_path / "whole", workers=0)
    stop_at(monkeypatch, 9)
    with pytest.raises(RunError, match="stopped for the test"):
        train(recipe, tmp_path / "run", workers=0)
    monkeypatch.undo()
    train(recipe, tmp_path / "run", workers=0, resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")
    assert all("health" in line for line in log(tmp_path / "run"))


def looked(recipe: Recipe) -> list[dict[str, Any]]:
    step = made(recipe)
    health = Health(step, ALONE, [])
    found = [health.look({"step": 0, "losses": {}})]
    step(0)
    return [*found, health.look({"step": 1, "losses": {"contrast": 1.0}})]


@pytest.mark.slow
def test_several_ranks_measure_what_one_process_does():
    recipe = changed(START, "synchronise_norm=true")
    alone = looked(recipe)
    together = on_ranks(2, looked, recipe)
    assert together[0] == together[1]
    assert together[0][0] == alone[0]  # random weights: the same bits
    assert together[0][1]["health"] == pytest.approx(alone[1]["health"], rel=1e-3, abs=1e-3)

"""A self-supervised run, and runs that begin with what it has learned."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from debiaspl.data import FewLabels, Task, load
from debiaspl.models import Network, scale
from debiaspl.training import Choice, Recipe, RunError, train
from debiaspl.training.classifier import nearest_class_mean
from debiaspl.training.step import Step
from tests.training.test_stream import stop_at
from tests.training.tiny import EAGER, TINY, changed, outcome, results

START = changed(TINY, "algorithm=moco", "correction=none", "memory=32")
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("start") / "run"
    train(START, folder)
    return folder


def begun_with(folder: Path, *settings: str) -> Recipe:
    return changed(EAGER, f"start={folder}", *settings)


def first_step(recipe: Recipe) -> Step:
    return Step(recipe, Task.of(load("digits"), FewLabels(1), seed=0), CPU)


def test_a_run_begins_with_the_features_of_its_start_and_a_classifier_of_its_own(start):
    step, alone = first_step(begun_with(start)), first_step(EAGER)
    learned = load_file(start / "model.safetensors")
    for model in (step.student, step.average.model):
        for name, value in model.state_dict().items():
            expected = alone.student.state_dict()[name] if name.startswith("head.") else learned[name]
            assert torch.equal(value, expected), name
    assert not torch.equal(learned["head.weight"], alone.student.head.weight)  # the labels of the start stay there


def test_its_digest_is_recorded_and_the_start_is_not_needed_again(tmp_path, monkeypatch, start):
    own = tmp_path / "start"
    shutil.copytree(start, own)
    train(begun_with(own), tmp_path / "whole")
    expected = hashlib.sha256((own / "model.safetensors").read_bytes()).hexdigest()
    assert results(tmp_path / "whole")["start"] == expected
    stop_at(monkeypatch, 6)
    with pytest.raises(RunError, match="stopped for the test"):
        train(begun_with(own), tmp_path / "stopped")
    monkeypatch.undo()
    shutil.rmtree(own)
    train(begun_with(own), tmp_path / "stopped", resume=True)
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")


@pytest.mark.slow
def test_every_generation_begins_with_the_start_which_is_read_once(tmp_path, monkeypatch, start):
    own, recipe = tmp_path / "start", ("algorithm=crest", "generations=2", "threshold=0.1")
    shutil.copytree(start, own)
    train(begun_with(own, *recipe), tmp_path / "whole")
    train(begun_with(own, *recipe, "start="), tmp_path / "alone")
    assert outcome(tmp_path / "whole")[0] != outcome(tmp_path / "alone")[0]
    stop_at(monkeypatch, 5)  # the second generation begins with step 6
    with pytest.raises(RunError, match="stopped for the test"):
        train(begun_with(own, *recipe), tmp_path / "stopped")
    monkeypatch.undo()
    shutil.rmtree(own)
    train(begun_with(own, *recipe), tmp_path / "stopped", resume=True)
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")
    step = first_step(begun_with(start, *recipe))
    step._begin_generation(1)
    learned = load_file(start / "model.safetensors")
    state = step.student.state_dict()
    assert all(
        torch.equal(state[name], value)
        for name, value in learned.items()
        if not name.startswith(("head.", "algorithm."))
    )


def test_another_start_is_another_run(tmp_path, start):
    train(begun_with(start), tmp_path / "begun")
    train(EAGER, tmp_path / "alone")
    assert outcome(tmp_path / "begun")[0] != outcome(tmp_path / "alone")[0]


@pytest.mark.parametrize("settings", [("network.width=8",), ("network=wrn", "depth=10", "network.width=1")])
def test_a_start_of_another_network_is_refused_before_anything_is_written(tmp_path, start, settings):
    with pytest.raises(
        ValueError, match=r"does not fit this network: it has trained small width=4\. .* --set network="
    ):
        train(begun_with(start, *settings), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("named", ["~nobody-of-that-name/run", "no\\such\\place"])
def test_a_start_that_is_nowhere(tmp_path, named):
    with pytest.raises(ValueError, match="was not found: looked for a file at"):
        train(begun_with(Path(named)), tmp_path / "run")


def test_a_run_that_has_not_ended_is_no_start(tmp_path, start):
    (tmp_path / "config.json").write_text((start / "config.json").read_text())
    with pytest.raises(ValueError, match="is a run that has not ended"):
        train(begun_with(tmp_path), tmp_path / "run")


def test_damaged_weights_are_refused(tmp_path, start):
    shutil.copytree(start, tmp_path / "start")
    weights = tmp_path / "start" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        train(begun_with(tmp_path / "start"), tmp_path / "run")


def test_a_frozen_encoder_refuses_a_start_which_it_would_not_use(tmp_path, start):
    frozen = replace(begun_with(start), network=Choice("encoder", {"frozen": True}))
    with pytest.raises(RunError, match="keeps its own weights, so the start would not be used"):
        train(frozen, tmp_path / "run")


def test_images_without_labels_in_hand(tmp_path):
    """A pair, and a set of images; bit for bit what the same images teach with labels, which no step sees."""
    digits, none = load("digits").train, changed(START, "labeled_batch=0")
    found = train(none, tmp_path / "pair", (digits.images, None))
    assert (found["labels"], found["unlabeled"], found["test"]) == ([], len(digits), 0)
    assert "accuracy" not in found
    assert found["recipe"]["protocol"] == {"name": "no-labels", "settings": {}}
    train(none, tmp_path / "minus", (digits.images, torch.full((len(digits),), -1)))
    train(none, tmp_path / "set", digits.without_labels())
    train(changed(none, "protocol=no-labels"), tmp_path / "named")
    labels = changed(none, "protocol=label-share", "share=0.1", "labeled_also_unlabeled=true")
    assert "accuracy" in train(labels, tmp_path / "labels")
    learned = load_file(tmp_path / "pair" / "model.safetensors")
    assert not any(name.startswith("head.") for name in learned)
    for name in ("minus", "set", "named", "labels"):
        other = load_file(tmp_path / name / "model.safetensors")
        assert all(torch.equal(other[key], value) for key, value in learned.items()), name
    begun = first_step(begun_with(tmp_path / "pair")).student.state_dict()
    assert all(torch.equal(begun[key], value) for key, value in learned.items() if not key.startswith("algorithm."))


def test_a_start_without_labels_resumes_to_the_same_bits(tmp_path, monkeypatch):
    recipe = changed(START, "labeled_batch=0", "protocol=no-labels", "accumulate=2")
    train(recipe, tmp_path / "whole")
    stop_at(monkeypatch, 6)
    with pytest.raises(RunError, match="stopped for the test"):
        train(recipe, tmp_path / "run")
    monkeypatch.undo()
    train(recipe, tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()
    assert results(tmp_path / "run") == results(tmp_path / "whole")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("algorithm=fixmatch",), "no image has a label, but fixmatch learns from labels"),
        (("algorithm=fixmatch", "correction=debiaser"), "no image has a label, but fixmatch learns from labels"),
        (("evaluate_every=4",), "evaluate_every is 4, but no image has a label to evaluate with"),
        (("validation=0.5",), r"validation is 0\.5, but there are no labels to hold out"),
        (("protocol=few-labels", "algorithm=fixmatch"), "labeled_batch is 0, but fixmatch learns from labels"),
    ],
)
def test_what_cannot_be_done_without_labels_is_refused_before_anything_is_written(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        train(changed(START, "labeled_batch=0", "protocol=no-labels", *settings), tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Pixels(Network):
    """Features that can be computed by hand."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.num_features = 64
        self.head = nn.Linear(64, classes)

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        return images.flatten(1)


def test_the_classifier_of_a_start_is_the_nearest_class_mean_written_out():
    task = Task.of(load("digits"), FewLabels(3), seed=0)
    model, mean = Pixels(10), torch.linspace(-1, 1, 64)

    def direction(vector: torch.Tensor) -> torch.Tensor:
        return vector / vector.square().sum().sqrt()

    centres = []
    for label in range(10):
        own = [
            direction(image - mean) for image in model.embed(scale(task.labeled.images[task.labeled.labels == label]))
        ]
        centres.append(direction(sum(own) / len(own)))
    features = model.embed(scale(task.test.images[:100]))
    expected = [max(range(10), key=lambda label: float(direction(image - mean) @ centres[label])) for image in features]
    drawn = torch.get_rng_state()
    head = nearest_class_mean(model, task.labeled, mean)
    assert torch.equal(torch.get_rng_state(), drawn)  # the user's own random numbers
    assert head(features).argmax(-1).tolist() == expected
    assert not any(parameter.requires_grad for parameter in head.parameters())


def test_a_class_without_labels_is_never_chosen():
    task = Task.of(load("digits"), FewLabels(1), seed=0)
    known = task.labeled.select((task.labeled.labels != 4).nonzero().flatten())
    head = nearest_class_mean(Pixels(10), known, torch.zeros(64))
    chances = head(Pixels(10).embed(scale(task.test.images))).softmax(-1)
    assert chances.isfinite().all()
    assert chances[:, 4].max() == 0


@pytest.mark.slow(seconds=15)
def test_features_that_are_learned_without_labels_tell_digits_apart(tmp_path):
    """Ten labels a class. A loss that teaches nothing, or a collapse, is no better than random weights. MoCo and SimCLR
    are in test_collapse.py."""
    size = ("unlabeled_batch=128", "labeled_batch=1", "network.width=8", "per_class=10")
    average = ("average_decay=0.95", "average_statistics=true")
    swav = ("steps=400", "learning_rate=0.03", "prototypes=64", "code_temperature=0.02")
    recipe = changed(TINY, "algorithm=swav", "correction=none", *size, *average, *swav)
    random = train(changed(recipe, "steps=1", "learning_rate=0"), tmp_path / "random")
    assert train(recipe, tmp_path / "learned")["accuracy"] > random["accuracy"] + 0.05

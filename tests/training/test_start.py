"""A self-supervised run, and runs that begin with what it has learned."""

import hashlib
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from debiaspl.data import FewLabels, Task, load
from debiaspl.models import Network, scale
from debiaspl.training import Recipe, train
from debiaspl.training.classifier import class_means, labeled_features
from debiaspl.training.step import Step
from tests.training.tiny import EAGER, TINY, changed, outcome, results, train_until

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


def test_its_digest_is_recorded_and_the_start_is_not_needed_again(tmp_path, start):
    own = shutil.copytree(start, tmp_path / "start")
    train(begun_with(own), tmp_path / "whole")
    expected = hashlib.sha256((own / "model.safetensors").read_bytes()).hexdigest()
    assert results(tmp_path / "whole")["start"] == expected
    train_until(6, begun_with(own), tmp_path / "stopped")
    shutil.rmtree(own)
    train(begun_with(own), tmp_path / "stopped", resume=True)
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")


@pytest.mark.slow
def test_every_generation_begins_with_the_start_which_is_read_once(tmp_path, start):
    settings = "algorithm=crest", "generations=2", "threshold=0.1"
    own = shutil.copytree(start, tmp_path / "start")
    recipe = begun_with(own, *settings)
    train(recipe, tmp_path / "whole")
    train_until(5, recipe, tmp_path / "stopped")  # the second generation begins with step 6
    shutil.rmtree(own)
    train(recipe, tmp_path / "stopped", resume=True)
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")
    step = first_step(begun_with(start, *settings))
    step._begin_generation(1)
    learned, state = load_file(start / "model.safetensors"), step.student.state_dict()
    body = [name for name in learned if not name.startswith(("head.", "algorithm."))]
    assert all(torch.equal(state[name], learned[name]) for name in body)


def test_what_cannot_be_a_start_is_refused_before_anything_is_written(tmp_path, start):
    unfinished, damaged = tmp_path / "unfinished", shutil.copytree(start, tmp_path / "damaged")
    unfinished.mkdir()
    shutil.copy(start / "config.json", unfinished)
    weights = damaged / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    for recipe, message in (
        (begun_with(start, "network.width=8"), "small width=4"),
        (begun_with(start, "network=wrn", "depth=10", "network.width=1"), "small width=4"),
        (begun_with(Path("no\\such\\place")), "was not found"),
        (begun_with(unfinished), "has not ended"),
        (begun_with(damaged), "checkpoint"),
    ):
        with pytest.raises(ValueError, match=message):
            train(recipe, tmp_path / "run")
        assert not (tmp_path / "run").exists()


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


def test_a_start_without_labels_resumes_to_the_same_bits(tmp_path):
    recipe = changed(START, "labeled_batch=0", "protocol=no-labels", "accumulate=2")
    train(recipe, tmp_path / "whole")
    train_until(6, recipe, tmp_path / "run")
    train(recipe, tmp_path / "run", resume=True)
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("run", "whole"))
    assert one == other
    assert results(tmp_path / "run") == results(tmp_path / "whole")


@pytest.mark.parametrize(
    ("settings", "noun"),
    [
        (("algorithm=fixmatch",), "no image has a label"),
        (("evaluate_every=4",), "evaluate_every"),
        (("validation=0.5",), "validation"),
        (("protocol=few-labels", "algorithm=fixmatch"), "labeled_batch"),
    ],
)
def test_what_cannot_be_done_without_labels_is_refused_before_anything_is_written(tmp_path, settings, noun):
    with pytest.raises(ValueError, match=noun):
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
    head = class_means(model.head, *labeled_features(model, task.labeled), mean)
    assert torch.equal(torch.get_rng_state(), drawn)  # the user's own random numbers
    assert head(features).argmax(-1).tolist() == expected
    assert not any(parameter.requires_grad for parameter in head.parameters())


def test_a_class_without_labels_is_never_chosen():
    task = Task.of(load("digits"), FewLabels(1), seed=0)
    known = task.labeled.select((task.labeled.labels != 4).nonzero().flatten())
    head = class_means(nn.Linear(64, 10), *labeled_features(Pixels(10), known), torch.zeros(64))
    chances = head(Pixels(10).embed(scale(task.test.images))).softmax(-1)
    assert chances.isfinite().all()
    assert chances[:, 4].max() == 0


@pytest.mark.slow(seconds=15)
def test_features_that_are_learned_without_labels_tell_digits_apart(tmp_path):
    """Ten labels a class. A loss that teaches nothing, or a collapse, is no better than random weights. MoCo is
    in tests/recipes/test_start.py."""
    size = ("unlabeled_batch=128", "labeled_batch=1", "network.width=8", "per_class=10")
    average = ("average_decay=0.95", "average_statistics=true")
    swav = ("steps=400", "learning_rate=0.03", "prototypes=64", "code_temperature=0.02")
    recipe = changed(TINY, "algorithm=swav", "correction=none", *size, *average, *swav)
    random = train(changed(recipe, "steps=1", "learning_rate=0"), tmp_path / "random")
    assert train(recipe, tmp_path / "learned")["accuracy"] > random["accuracy"] + 0.05

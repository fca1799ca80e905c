"""Training on data that somebody has in hand: an ImageSet, arrays, a task; and what the run's folder says of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import debiaspl
from debiaspl import ImageSet, Task, load_model
from debiaspl.data import Vectors, load
from debiaspl.training import RunError, train
from debiaspl.training.tasks import IN_MEMORY
from tests.training.tiny import TINY, changed, outcome

SHORT = changed(TINY, "steps=4")


@pytest.fixture(scope="module")
def digits():
    return load("digits").train


def config(folder):
    return json.loads((folder / "config.json").read_text())["recipe"]


def test_an_image_set_is_split_by_the_recipes_protocol_and_a_fifth_is_the_test_set(digits, tmp_path):
    """``debiaspl.train(recipe("digits-10"), out, images)`` was a TypeError about per_class."""
    results = debiaspl.train(SHORT, tmp_path / "run", digits)
    assert results["labels"] == [1] * 10
    assert results["test"] + results["unlabeled"] == len(digits)
    assert config(tmp_path / "run")["data"] == IN_MEMORY
    assert config(tmp_path / "run")["protocol"]["name"] == "few-labels"


def test_where_some_labels_are_missing_the_others_are_what_is_learned_from(digits, tmp_path):
    labels = digits.labels.clone()
    labels[30:] = -1
    partly = ImageSet(digits.images, labels, digits.classes)
    results = train(SHORT, tmp_path / "run", partly)
    assert sum(results["labels"]) == 30
    assert results["unlabeled"] == len(digits) - 30
    assert config(tmp_path / "run")["protocol"] == {"name": "given", "settings": {}}


def test_arrays_lists_and_image_sets_give_the_same_bits(digits, tmp_path):
    pixels, labels = digits.images[:200].numpy(), digits.labels[:200].numpy().copy()
    labels[50:] = -1
    forms = {
        "bytes": (pixels, labels),
        "floats, channels last": (np.moveaxis(pixels, 1, 3) / 255, labels.astype(np.int32)),
        "grey": (pixels[:, 0], labels.tolist()),
        "tensors": (torch.from_numpy(pixels), torch.from_numpy(labels)),
    }
    for number, data in enumerate(forms.values()):
        train(SHORT, tmp_path / f"run{number}", data)
    weights = [outcome(tmp_path / f"run{number}")[0] for number in range(len(forms))]
    assert all(one == weights[0] for one in weights)
    model = load_model(tmp_path / "run0")
    assert model.predict(pixels[:5]) == model.predict(torch.from_numpy(pixels[:5]))
    assert model.classes == tuple("0123456789")


def test_a_task_is_taken_as_it_is_and_a_stopped_run_wants_the_same(digits, tmp_path):
    labeled, test = digits.select(range(20)), digits.select(range(400, 500))
    task = Task(labeled, digits.select(range(20, 400)).without_labels(), test)
    results = train(SHORT, tmp_path / "run", task)
    assert (sum(results["labels"]), results["unlabeled"], results["test"]) == (20, 380, 100)
    (tmp_path / "run" / "results.json").unlink()
    other = Task(digits.select(range(21)), task.unlabeled, test)
    with pytest.raises(RunError, match="the images or labels are not those with"):
        train(SHORT, tmp_path / "run", other, resume=True)
    assert train(SHORT, tmp_path / "run", task, resume=True)["accuracy"] == results["accuracy"]


def test_labels_that_were_trained_with_are_no_test_set_and_the_results_say_so(digits, tmp_path):
    labels = digits.labels.clone()
    labels[30:] = -1
    results = train(SHORT, tmp_path / "run", (digits.images, labels))
    assert results["evaluated"].startswith("the labels it was trained with, because there are no others")
    assert results["check"] == {"kind": "none", "folds": 0, "labels": 30}
    whole = train(SHORT, tmp_path / "whole", digits)
    assert whole["evaluated"].endswith("on the test set")


def test_sets_of_arrays_whose_images_have_the_same_names_stay_apart(digits):
    """Images of arrays are called by their numbers: labeled 0 and unlabeled 0 are two."""
    labeled, rest = (ImageSet(part.images, part.labels, part.classes) for part in (digits.select(range(4)), digits))
    apart = Task(labeled, ImageSet(rest.images[4:12], torch.full((8,), -1), rest.classes), labeled)
    assert len(apart.every_image()) == 12
    assert apart.unlabeled.ids[0] == "unlabeled/0"
    both = Task(labeled, rest.without_labels(), labeled)  # the same images, under the same names
    assert both.unlabeled.ids == rest.ids
    assert len(both.every_image()) == len(rest)


def test_wrong_data_are_refused_in_words_and_leave_no_folder(digits, tmp_path):
    pixels = digits.images[:10]
    for data, error, message in (
        (pixels, TypeError, "data is a Tensor, expected a Task, an ImageSet, or a pair of arrays"),
        ("digits", TypeError, "data is a str, expected"),
        ((pixels, ["a"] * 10), ValueError, "labels cannot be converted to a tensor"),
        ((pixels, [0.5] * 10), ValueError, "labels have dtype torch.float64, expected class numbers"),
        ((pixels, [0, 1]), ValueError, r"labels have shape \(2,\) .* expected int64 \(10,\)"),
        ((torch.full((4, 8, 8), 7.5), [0, 1, 0, 1]), ValueError, "dtype torch.float32, expected uint8"),
    ):
        with pytest.raises(error, match=message):
            train(SHORT, tmp_path / "run", data)
    with pytest.raises(ValueError, match="the sets of a task have different classes"):
        Task(digits, digits, ImageSet(digits.images, digits.labels, tuple("abcdefghij")))
    unlabeled = digits.without_labels()
    with pytest.raises(ValueError, match="a test or validation image has no label"):
        Task(digits, unlabeled, ImageSet(digits.images, unlabeled.labels, digits.classes))
    task = Task(digits, unlabeled, digits)
    with pytest.raises(ValueError, match=r"validation is 0\.5, but a task has its own"):
        train(changed(SHORT, "validation=0.5"), tmp_path / "run", task)
    encoded = task.with_sets(lambda images: replace(images, images=Vectors(torch.ones(len(images), 1, 3))))
    with pytest.raises(ValueError, match="the task contains vectors"):
        train(SHORT, tmp_path / "run", encoded)
    assert not (tmp_path / "run").exists()

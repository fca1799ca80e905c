"""Training on data that somebody has in hand: an ImageSet, arrays, a task; and what the run's folder says of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import debiaspl
from debiaspl import ImageSet, Task, load_model
from debiaspl.data import load
from debiaspl.training import RunError, train
from tests.training.tiny import TINY, changed, outcome

SHORT = changed(TINY, "steps=4")


@pytest.fixture(scope="module")
def digits():
    return load("digits").train


def config(folder):
    return json.loads((folder / "config.json").read_text())["recipe"]


def test_an_image_set_is_split_by_the_recipes_protocol_and_a_fifth_is_the_test_set(digits, tmp_path):
    results = debiaspl.train(SHORT, tmp_path / "run", digits)
    assert results["labels"] == [1] * 10
    assert results["test"] + results["unlabeled"] == len(digits)
    assert config(tmp_path / "run")["data"] == "in memory"
    assert config(tmp_path / "run")["protocol"]["name"] == "few-labels"


def test_where_some_labels_are_missing_the_others_are_what_is_learned_from(digits, tmp_path):
    """They are no test set, and the results say so."""
    labels = digits.labels.clone()
    labels[30:] = -1
    results = train(SHORT, tmp_path / "run", ImageSet(digits.images, labels, digits.classes))
    assert sum(results["labels"]) == 30
    assert results["unlabeled"] == len(digits) - 30
    assert config(tmp_path / "run")["protocol"] == {"name": "given", "settings": {}}
    assert results["check"] == {"kind": "none", "folds": 0, "labels": 30}


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
    with pytest.raises(RunError, match="images or labels"):
        train(SHORT, tmp_path / "run", other, resume=True)
    assert train(SHORT, tmp_path / "run", task, resume=True)["accuracy"] == results["accuracy"]


def test_sets_of_arrays_whose_images_have_the_same_names_stay_apart(digits):
    """Images of arrays are called by their numbers: labeled 0 and unlabeled 0 are two."""
    labeled, rest = (ImageSet(part.images, part.labels, part.classes) for part in (digits.select(range(4)), digits))
    apart = Task(labeled, ImageSet(rest.images[4:12], torch.full((8,), -1), rest.classes), labeled)
    assert len(apart.every_image()) == 12
    assert apart.unlabeled.ids[0] == "unlabeled/0"
    both = Task(labeled, rest.without_labels(), labeled)  # the same images, under the same names
    assert both.unlabeled.ids == rest.ids
    assert len(both.every_image()) == len(rest)


def test_wrong_data_are_refused_and_leave_no_folder(digits, tmp_path):
    pixels, unlabeled = digits.images[:10], digits.without_labels()
    task = Task(digits, unlabeled, digits)
    encoded = task.with_sets(lambda images: replace(images, images=torch.ones(len(images), 3)))
    for data, error, noun, settings in (
        *((wrong, TypeError, type(wrong).__name__, []) for wrong in (pixels, "digits")),
        ((pixels, ["a"] * 10), ValueError, "labels", []),
        ((pixels, [0.5] * 10), ValueError, "dtype", []),
        ((pixels, [0, 1]), ValueError, "shape", []),
        *(((torch.full(shape, 7.5), [0, 1, 0, 1]), ValueError, "dtype", []) for shape in ((4, 8, 8), (4, 8))),
        (task, ValueError, "validation", ["validation=0.5"]),
        (encoded, ValueError, "vectors", []),
    ):
        with pytest.raises(error, match=noun):
            train(changed(SHORT, *settings), tmp_path / "run", data)
    with pytest.raises(TypeError, match=r"debiaspl\.recipe"):
        train("digits-10", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    others = {"classes": (digits.labels, tuple("abcdefghij")), "label": (unlabeled.labels, digits.classes)}
    for noun, (labels, classes) in others.items():
        with pytest.raises(ValueError, match=noun):
            Task(digits, unlabeled, ImageSet(digits.images, labels, classes))

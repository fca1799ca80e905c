"""Runs of many classes: nothing of classes times classes is made or written."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from debiaspl._measures import LARGEST_SQUARE, Cells
from debiaspl.data import ImageSet, Task
from debiaspl.report.runs import read_run, runs_page
from debiaspl.training import classifier, train
from tests.estimator.test_many_classes import LargestTensor
from tests.training.tiny import TINY

CLASSES = 3000


def test_a_run_of_many_classes_ends_and_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["debiaspl.models.predict"], "BATCH", 64)
    monkeypatch.setattr(sys.modules["debiaspl.training.evaluate"], "BATCH", 64)
    numbers = np.arange(CLASSES)
    images = ImageSet.of(np.random.default_rng(0).integers(0, 255, (CLASSES, 8, 8), np.uint8), numbers)
    with LargestTensor() as largest:
        results = train(
            replace(TINY, steps=2, log_every=1), tmp_path / "run", data=Task(images, images.without_labels(), images)
        )
    assert largest.numbers <= CLASSES**2 / 8
    assert (tmp_path / "run" / "results.json").stat().st_size < CLASSES**2
    cells = Cells.from_json(json.loads((tmp_path / "run" / "results.json").read_text())["confusion"], CLASSES)
    assert cells.images == CLASSES
    assert int(cells.right.sum()) == round(results["accuracy"] * CLASSES)
    assert len(runs_page([read_run(tmp_path / "run")])) < CLASSES**2


def test_class_means_of_many_classes(monkeypatch):
    monkeypatch.setattr(classifier, "MOST_MEMBERS", 2**16)
    features, label = torch.randn(CLASSES, 8), torch.arange(CLASSES) // 2
    with LargestTensor() as largest:
        head = classifier.class_means(torch.nn.Linear(8, CLASSES), features, label, torch.zeros(8))
    assert largest.numbers <= 2**16
    units = F.normalize(features, dim=-1)
    means = F.normalize(units[::2] + units[1::2], dim=-1)
    torch.testing.assert_close(F.normalize(head.weight[: CLASSES // 2], dim=-1), means, atol=1e-5, rtol=0)
    assert (head.bias == -torch.inf).sum() == CLASSES // 2


@pytest.mark.parametrize("classes", [3, LARGEST_SQUARE + 1])
def test_a_matrix_is_the_same_after_it_was_written(classes):
    truth, label = (torch.randint(classes, (500,), generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    cells = Cells.of(truth, label, classes)
    again = Cells.from_json(json.loads(json.dumps(cells.to_json())), classes)
    assert (again.dense() == cells.dense()).all()
    assert (Cells.sum([cells, again]).dense() == 2 * cells.dense()).all()


@pytest.mark.parametrize(
    "value",
    [None, 3, "ab", {}, [[1]], [[1, 2], [3]], [[1.0, 0], [0, 1]], [[-1, 0], [0, 1]], [[10**30, 0], [0, 1]],
     {"cells": 1}, {"cells": [[0, 2, 1]]}, {"cells": [[0, 1]]}, {"cells": [[0, 1, 2.5]]}, [[[1], [2]], [[3], [4]]]],
)  # fmt: skip
def test_what_is_no_matrix_of_two_classes_is_refused(value):
    with pytest.raises(ValueError, match="it "):
        Cells.from_json(value, 2)

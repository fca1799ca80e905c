"""The classifier from which a network is fine-tuned."""

from dataclasses import replace

import pytest
import torch

from debiaspl.data import FewLabels, Task, load
from debiaspl.features import FeatureTable
from debiaspl.features.begin import begin, fitted_head
from debiaspl.features.crosscheck import crosscheck
from debiaspl.features.fit import LINEAR, TableTask, enough_steps, fit_recipe
from debiaspl.training import Recipe
from debiaspl.training.step import Step
from tests.reference.logistic import of_mean_length

CPU, CLASSES = torch.device("cpu"), ("a", "b", "c")


@pytest.fixture(scope="module")
def rows() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features of three overlapping classes, all classes, and the few that are labels."""
    random = torch.Generator().manual_seed(0)
    truth = torch.arange(300) % 3
    centres = 3 + torch.randn(3, 20, generator=random)
    features = centres[truth] + torch.randn(300, 20, generator=random)
    labels = truth.clone()
    labels[36:] = -1
    return features, truth, labels


def test_it_says_what_the_fit_says_with_calibrated_confidence(rows):
    features, truth, labels = rows
    weight, bias = fitted_head(features, labels, CLASSES, seed=0)
    recipe = replace(LINEAR, first_classifier="graph", steps=enough_steps(300), optimise="photos")
    task = TableTask(labels, CLASSES, tuple(map(str, range(300))))
    table = FeatureTable(features, unit=True, device=CPU)
    (checked,) = crosscheck({"fit": recipe}, table, task, 3)
    fitted = fit_recipe(recipe, table, task)
    said = features @ weight.T + bias
    head, scaling = fitted.network.head, table.scaling
    parts = features, scaling.mean, scaling.gain, head.weight, head.bias
    slow = of_mean_length(*(part.tolist() for part in parts), checked.calibrated.temperature)
    torch.testing.assert_close(said, torch.tensor(slow), rtol=1e-4, atol=1e-4)
    sure, label = said.softmax(-1).max(-1)
    assert (label == fitted.predict(features)[1]).double().mean() > 0.97
    right = (label == truth)[36:].double().mean()
    assert abs(sure[36:].mean() - right) < 0.1


def test_one_label_a_class_cannot_be_calibrated_but_begins(rows):
    features, truth, labels = rows
    few = torch.full_like(labels, -1)
    few[:3] = labels[:3]
    weight, bias = fitted_head(features, few, CLASSES, seed=0)
    assert ((features @ weight.T + bias).argmax(1) == truth).double().mean() > 0.6


def test_other_first_classifiers_are_as_always_and_the_loop_alone_has_no_fit():
    task = Task.of(load("digits"), FewLabels(4), seed=0)
    recipe = Recipe("digits", first_classifier="fit", steps=2).changed(network="small")
    with pytest.raises(ValueError, match="PHOTOS"):
        Step(recipe, task, CPU)
    for kind in ("fit", "probe"):
        with pytest.raises(ValueError, match="random weights"):
            Step(recipe.changed(first_classifier=kind), task, CPU, begin=begin)

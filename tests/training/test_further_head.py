"""A classifier that an algorithm trains beside the network's own: averaged like the network, and used in its place."""

import json
from copy import deepcopy

import torch
from safetensors.torch import load_file

from debiaspl import load_model
from debiaspl.algorithms import ABC
from debiaspl.data import FewLabels, Task, load
from debiaspl.models import LinearNetwork
from debiaspl.training import train
from debiaspl.training.evaluate import evaluate, predict_all
from debiaspl.training.step import Step, fit
from tests.training.tiny import EAGER, changed

CPU = torch.device("cpu")
RECIPE = changed(EAGER, "algorithm=abc", "average_decay=0.8")


def digits() -> Task:
    return Task.of(load("digits"), FewLabels(1), seed=0)


def test_its_average_moves_like_that_of_the_network():
    step = Step(RECIPE, digits(), CPU)
    further = step.algorithm.classifier()
    slow = {name: value.clone() for name, value in further.head.state_dict().items()}
    for number in range(4):
        step(number)
        for name, value in further.head.state_dict().items():
            slow[name] = 0.8 * slow[name] + 0.2 * value
    torch.testing.assert_close(dict(further.average.named_buffers()), slow)
    assert not torch.equal(further.average.weight, further.head.weight)
    assert {name for name, _ in step.algorithm.named_parameters()} == {"auxiliary.head.weight", "auxiliary.head.bias"}


def test_it_is_evaluated_and_saved_as_the_model(tmp_path):
    results = train(changed(RECIPE, "evaluate_every=12"), tmp_path / "run")
    task, step = digits(), fit(RECIPE, digits(), CPU)
    average = dict(step.algorithm.auxiliary.average.named_buffers())
    saved = load_file(tmp_path / "run" / "model.safetensors")
    assert all(torch.equal(saved[f"head.{name}"], value) for name, value in average.items())
    assert not torch.equal(saved["head.weight"], step.average.model.head.weight)
    model = deepcopy(step.average.model)
    model.head.load_state_dict(average)
    expected = evaluate(model, task.test).accuracy
    logged = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert results["accuracy"] == logged[-1]["accuracy"] == expected
    assert results["evaluated"].startswith("the further classifier of the algorithm; ")
    labeled = load_model(tmp_path / "run").predict(task.unlabeled.images[:50].numpy())
    expected = predict_all(model, task.unlabeled)[:50].argmax(-1)
    assert labeled == [task.unlabeled.classes[number] for number in expected.tolist()]


def test_a_correction_of_the_finished_classifier_acts_on_it():
    step = fit(changed(RECIPE, "correction=tau-norm", "steps=2"), digits(), CPU)
    own = step.algorithm.auxiliary.finished(step.student.head)
    expected = step.algorithm.correction.classifier(own, torch.zeros(step.student.num_features))
    assert torch.equal(step.finished().head.weight, expected.weight)
    assert not torch.equal(expected.weight, own.weight)


def test_it_begins_with_the_first_classifier():
    encoded, further = LinearNetwork(4, 3), ABC(3, 4, [1, 1, 1]).auxiliary
    encoded.head.weight.data.normal_(generator=torch.Generator().manual_seed(0))
    further.begin_with(encoded.head)
    features = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    for head in (further, further.averaged):
        assert torch.equal(head(features), encoded.head(features))

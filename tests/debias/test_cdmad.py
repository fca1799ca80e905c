"""CDMAD: the logits of a blank image, subtracted while training and in the end."""

import torch
from torch import nn

from debiaspl.data import FewLabels, Task, load
from debiaspl.debias import CDMAD
from debiaspl.models import SmallNet
from debiaspl.training.step import Step, fit
from tests.reference.paper import softmax
from tests.training.tiny import EAGER, changed

CPU = torch.device("cpu")
RECIPE = changed(EAGER, "correction=cdmad", "begin=0.5", "average_decay=0.5")


def network() -> SmallNet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return SmallNet(4, channels=3, width=2)


def test_labels_are_those_of_logits_less_the_blank_images():
    seen, correction = network(), CDMAD(4, begin=0.2)
    before = {name: value.clone() for name, value in seen.state_dict().items()}
    weak = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    like = torch.zeros(5, 3, 8, 8)
    correction.look(seen, like, torch.tensor(0.1))
    assert torch.equal(correction(weak), weak.softmax(-1))  # it has not begun
    correction.look(seen, like, torch.tensor(0.3))
    assert seen.training
    assert all(torch.equal(value, before[name]) for name, value in seen.state_dict().items())
    blank = seen.eval()(torch.ones(1, 3, 8, 8))[0].tolist()
    expected = [softmax([f - g for f, g in zip(row, blank, strict=True)]) for row in weak.tolist()]
    torch.testing.assert_close(correction(weak), torch.tensor(expected))


def test_the_finished_classifier_is_neutral_to_a_blank_image_and_may_have_no_bias():
    task = Task.of(load("digits"), FewLabels(1), seed=0)
    step = fit(RECIPE, task, CPU)
    white = torch.ones(1, *task.labeled.images.shape[1:])
    with torch.no_grad():
        raw, final = step.average.model(white), step.finished()(white)
        image = torch.zeros_like(white)
        torch.testing.assert_close(step.finished()(image), step.average.model(image) - raw)
    torch.testing.assert_close(final, torch.zeros(1, 10), atol=1e-5, rtol=0)
    assert raw.std() > 1e-3
    correction = CDMAD(2)
    correction.blank.copy_(torch.tensor([1.0, -2.0]))
    head = nn.Linear(3, 2, bias=False)
    assert correction.classifier(head, torch.zeros(3)).bias.tolist() == [-1, 2]


def test_what_the_finished_model_shows_does_not_change_the_next_step():
    task = Task.of(load("digits"), FewLabels(1), seed=0)
    states = []
    for looks in (False, True):
        step = Step(RECIPE, task, CPU)
        for number in range(10):
            step(number)
            if looks:
                step.finished()
        states.append({name: value.clone() for name, value in step.state().items()})
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
    assert step.algorithm.correction.blank.any()

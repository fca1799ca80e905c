"""PAWS against its slow version, and what it does with classes of unequal numbers."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from debiaspl.algorithms import PAWS, Batch, Models
from debiaspl.augment.cropcolor import AREA, small_crops
from debiaspl.data import LongTail, Task, load
from debiaspl.data.feed import BalancedStream
from debiaspl.debias import Debiaser
from debiaspl.training.step import Step
from tests.algorithms.test_starts import IMAGES, Plain, batch_normed, made
from tests.reference import paws as slow
from tests.reference.paper import debiased, moved_prior, softmax
from tests.training.tiny import EAGER, changed

CLASSES = 3
LABELS = (0, 0, 0, 1, 2, 0, 1)


def paws(**settings: Any) -> Any:
    return made(PAWS, num_classes=CLASSES, width=4, **settings)


def batch(labels: tuple[int, ...] = LABELS, seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)

    def images(count: int) -> Tensor:
        return torch.randn(count, 3, 4, 4, generator=generator, dtype=torch.float64)

    image = images(IMAGES)
    strong = tuple(image + 0.5 * images(IMAGES) for _ in range(2))
    return Batch(images(len(labels)), torch.tensor(labels), strong=strong)


def models() -> Models:
    return Models(Plain(0), Plain(0))


def predictions(algorithm: PAWS, drawn: Batch, temperature: float, smoothing: float) -> list[list[float]]:
    """By the slow version: of the first views, then of the second."""
    rows = batch_normed(algorithm.projector, models().student.embed(torch.cat([drawn.labeled, *drawn.strong]))).tolist()
    labels = drawn.labels.tolist()
    support, views = rows[: len(labels)], rows[len(labels) :]
    return [slow.prediction(view, support, labels, CLASSES, temperature, smoothing) for view in views]


@pytest.mark.parametrize(
    ("temperature", "sharpening", "smoothing", "weight"),
    [(0.1, 0.25, 0.1, 1.0), (0.5, 1.0, 0.0, 0.3), (1.0, 0.5, 0.3, 2.0)],
)
def test_losses_are_those_of_plain_loops(temperature, sharpening, smoothing, weight):
    settings = {"temperature": temperature, "sharpening": sharpening, "label_smoothing": smoothing}
    algorithm, drawn = paws(**settings, entropy_weight=weight), batch()
    found = algorithm.losses(models(), drawn)
    expected = predictions(algorithm, drawn, temperature, smoothing)
    consistency = slow.consistency(expected[:IMAGES], expected[IMAGES:], sharpening)
    assert found["unlabeled"].item() == pytest.approx(consistency, rel=1e-8)
    assert found["entropy"].item() == pytest.approx(-weight * slow.entropy_of_mean(expected, sharpening), rel=1e-8)


def test_targets_are_debiased_and_the_prediction_has_the_margin():
    algorithm, drawn = paws(correction=Debiaser(CLASSES, strength=0.7, momentum=0.5)), batch()
    algorithm.correction.prior.copy_(torch.tensor([0.5, 0.3, 0.2]))
    raw = predictions(algorithm, drawn, 0.1, 0.1)
    found = algorithm.losses(models(), drawn)
    logits, old = [[math.log(value) for value in one] for one in raw], [0.5, 0.3, 0.2]
    new = moved_prior(old, logits, 0.5)  # once, from both views
    assert algorithm.correction.prior.tolist() == pytest.approx(new, rel=1e-5)
    targets = [slow.sharpened(debiased(one, old, 0.7), 0.25) for one in logits]
    seen = [softmax([value + 0.7 * math.log(share) for value, share in zip(one, new, strict=True)]) for one in logits]
    swapped = targets[IMAGES:] + targets[:IMAGES]
    expected = sum(slow.cross_entropy(*pair) for pair in zip(swapped, seen, strict=True)) / len(seen)
    assert found["unlabeled"].item() == pytest.approx(expected, rel=1e-5)  # the prior is float32
    assert found["entropy"].item() == pytest.approx(-slow.entropy_of_mean(raw, 0.25), rel=1e-8)


def test_classes_count_alike_however_often_they_are_drawn():
    """An image that stands in the batch four times says no more of its class than one that stands there once."""
    generator = torch.Generator().manual_seed(0)
    views, support = (F.normalize(torch.randn(count, 4, generator=generator), dim=-1) for count in (6, CLASSES))
    once = torch.arange(CLASSES)
    often = torch.tensor([0, 0, 0, 0, 1, 2, 2])
    algorithm = paws(label_smoothing=0.0)
    expected = algorithm.logits(views, support, once)
    torch.testing.assert_close(algorithm.logits(views, support[often], often), expected)
    plain = (views @ support.T / 0.1).softmax(-1)
    torch.testing.assert_close(expected.exp(), plain)


def test_a_class_that_the_batch_lacks_is_not_predicted():
    algorithm, drawn = paws(), batch((0, 0, 2, 2))
    losses = algorithm.losses(models(), drawn)
    assert not (algorithm.monitors["pseudo_label"] == 1).any()
    assert all(value.isfinite() for value in losses.values())
    without = paws(label_smoothing=0.0).losses(models(), drawn)  # its probability is 0
    assert all(value.isfinite() for value in without.values())


def test_features_are_shaped_by_views_alone_and_the_classifier_by_labels_alone():
    used, algorithm, drawn = models(), paws(), batch()
    losses = algorithm.losses(used, drawn)
    losses["labeled"].backward(retain_graph=True)
    assert used.student.weight.grad is None
    assert used.student.head.weight.grad.abs().sum() > 0
    used.student.head.weight.grad = None
    (losses["unlabeled"] + losses["entropy"]).backward()
    assert used.student.weight.grad.abs().sum() > 0
    assert used.student.head.weight.grad is None


def test_gradients_reach_the_support_and_both_views_but_no_target():
    """With a target that is fixed, the gradient is that of cross-entropy alone, written out here."""
    algorithm, drawn = paws(entropy_weight=0.0, sharpening=1.0), batch()
    rows = [value.requires_grad_() for value in (drawn.labeled, *drawn.strong)]
    loss = algorithm.losses(models(), drawn)["unlabeled"]
    found = torch.autograd.grad(loss, rows)
    features = models().student.embed(torch.cat(rows))
    support, views = F.normalize(algorithm.projector(features), dim=-1).tensor_split([len(LABELS)])
    logits = algorithm.logits(views, support, drawn.labels)
    target = torch.cat(logits.exp().detach().chunk(2)[::-1])
    expected = torch.autograd.grad(-(target * logits).sum(-1).mean(), rows)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
        assert one.abs().sum() > 0


def test_small_crops_learn_the_mean_of_both_targets_from_two_views_of_the_support():
    algorithm, drawn = paws(small_views=1, support_views=2, entropy_weight=0.3), batch()
    assert (algorithm.views.strong, algorithm.labeled_strong) == (3, 1)
    generator = torch.Generator().manual_seed(4)
    third, second = drawn.strong[0] + 0.2, drawn.labeled + 0.1
    drawn = replace(drawn, strong=(*drawn.strong, third), labeled_strong=(second,), generator=generator)
    found = algorithm.losses(models(), drawn)
    crops = small_crops([third], AREA, torch.Generator().manual_seed(4))
    embed, labels = models().student.embed, drawn.labels.tolist() * 2
    rows = batch_normed(algorithm.projector, embed(torch.cat([drawn.labeled, second, *drawn.strong[:2]]))).tolist()
    support, views = rows[: len(labels)], rows[len(labels) :]
    views += batch_normed(algorithm.projector, embed(crops)).tolist()
    one, two, three = (
        [slow.prediction(view, support, labels, CLASSES, 0.1, 0.1) for view in views[start : start + IMAGES]]
        for start in (0, IMAGES, 2 * IMAGES)
    )
    total = 0.0
    for first, other, small in zip(one, two, three, strict=True):
        targets = slow.sharpened(first, 0.25), slow.sharpened(other, 0.25)
        mean = [(a + b) / 2 for a, b in zip(*targets, strict=True)]
        total += slow.cross_entropy(targets[1], first) + slow.cross_entropy(targets[0], other)
        total += slow.cross_entropy(mean, small)
    assert found["unlabeled"].item() == pytest.approx(total / (3 * IMAGES), rel=1e-8)
    assert found["entropy"].item() == pytest.approx(-0.3 * slow.entropy_of_mean([*one, *two, *three], 0.25), rel=1e-8)


def test_a_balanced_support_has_as_many_of_every_class():
    task = Task.of(load("digits"), LongTail(gamma=20, labeled_fraction=0.3), seed=0)
    recipe = changed(EAGER, "algorithm=paws", "balanced_support=true", "support_views=2", "labeled_batch=20")
    step = Step(recipe, task, torch.device("cpu"))
    labels = [step.task.labeled.labels[step.labeled[number].positions] for number in range(30)]
    assert all(torch.bincount(each, minlength=10).tolist() == [2] * 10 for each in labels)
    seen = torch.cat([step.labeled[number].positions for number in range(30)])
    rare = task.labeled.labels == task.labeled.labels.bincount(minlength=10).argmin()
    uses = seen.bincount(minlength=len(task.labeled))[rare]
    assert uses.max() - uses.min() <= 1  # none is drawn again before the others of its class
    parts = [BalancedStream(task.labeled.labels, 20, 0, part, 2)[3].tolist() for part in range(2)]
    assert [*parts[0], *parts[1]] == BalancedStream(task.labeled.labels, 20, 0)[3].tolist()

"""ABC: FixMatch as it was, and an auxiliary classifier that masks balance."""

import pytest
import torch
from torch import Tensor

from debiaspl.algorithms import ABC, Batch, Models
from debiaspl.algorithms.abc import chosen_with
from debiaspl.debias import Correction
from tests.algorithms.test_algorithms import CLASSES, FEATURES, LABELED, UNLABELED, Features, batch, biased_debiaser
from tests.reference import abc as twin

COUNTS = [40, 20, 8, 4]


def made(correction: Correction | None = None, **settings) -> ABC:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        algorithm = ABC(CLASSES, FEATURES, COUNTS, correction, **{"threshold": 0.5, **settings})
    algorithm.auxiliary.head.weight.data.mul_(4)
    algorithm.auxiliary.average.weight.mul_(-3)  # another classifier than the one that is trained
    return algorithm


def drawn(views: int = 1, progress: float = 0.5) -> Batch:
    made_of = batch(views)
    parts = made_of.labeled, made_of.labels, made_of.weak, made_of.strong
    return Batch(*parts, progress=torch.tensor(progress), generator=torch.Generator().manual_seed(5))


def uniform() -> tuple[list[float], list[float]]:
    """What is drawn for the masks of labeled and of unlabeled images."""
    generator = torch.Generator().manual_seed(5)
    return torch.rand(LABELED, generator=generator).tolist(), torch.rand(UNLABELED, generator=generator).tolist()


@pytest.mark.parametrize(("views", "joint", "ramp_up", "done"), [(1, True, 1.0, 0.5), (2, False, 0.25, 1.0)])
def test_the_auxiliary_losses_equal_the_slow_twin(views, joint, ramp_up, done):
    student, step = Features(), drawn(views)
    settings = {"views": views, "joint": joint, "ramp_up": ramp_up, "auxiliary_weight": 2.0}
    algorithm = made(biased_debiaser(), **settings)
    losses = algorithm.losses(Models(student, student), step)
    assert student.passes == (1 if joint else 2)  # both classifiers look at the same features

    def logits(images: Tensor) -> list[list[float]]:
        return algorithm.auxiliary(student.embed(images)).tolist()

    for_labeled, for_unlabeled = uniform()
    expected = 2 * twin.labeled_loss(logits(step.labeled), step.labels.tolist(), COUNTS, for_labeled)
    assert losses["auxiliary_labeled"].item() == pytest.approx(expected, rel=1e-5)
    weak = torch.stack([torch.tensor(logits(view)) for view in step.weak]).mean(0).tolist()
    strong = [logits(view) for view in step.strong]
    expected = 2 * twin.unlabeled_loss(weak, strong, COUNTS, for_unlabeled, 0.5, done)
    assert losses["auxiliary_unlabeled"].item() == pytest.approx(expected, rel=1e-5)
    assert 0 < algorithm.monitors["auxiliary_used"] < 1


def test_a_teacher_labels_with_the_average_of_the_auxiliary_classifier():
    student, teacher, step = Features(), Features(7), drawn()
    algorithm = made(ramp_up=0.25)
    loss = algorithm.losses(Models(student, teacher), step)["auxiliary_unlabeled"]
    weak = algorithm.auxiliary.averaged(teacher.embed(step.weak[0])).tolist()
    strong = algorithm.auxiliary(student.embed(step.strong[0])).tolist()
    assert loss.item() == pytest.approx(twin.unlabeled_loss(weak, [strong], COUNTS, uniform()[1], 0.5, 1.0), rel=1e-5)


def test_masks_choose_each_class_equally_often():
    labels = torch.tensor([number for number, count in enumerate(COUNTS) for _ in range(count * 100)])
    chosen = chosen_with(made().balance[labels], torch.Generator().manual_seed(0))
    counts = labels[chosen].bincount(minlength=CLASSES)
    assert (counts - 400).abs().max() < 80  # four standard deviations of the largest class
    assert counts[-1] == 400


def test_a_class_without_labels_counts_like_the_smallest():
    assert ABC(3, FEATURES, [10, 0, 5]).balance.tolist() == [0.5, 1, 1]

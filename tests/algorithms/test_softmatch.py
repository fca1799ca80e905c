"""SoftMatch: weights from a truncated Gaussian of the confidence."""

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import FixMatch, SoftMatch
from debiaspl.debias import DistributionAlignment
from tests.algorithms.test_algorithms import CLASSES, UNLABELED, batch, biased_debiaser, models
from tests.reference import paper
from tests.reference import softmatch as twin


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("sharpness", [1.0, 2.0])
@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_steps_equal_the_slow_twin(strength, sharpness, joint):
    used, prior, mean, variance = models(), [0.4, 0.3, 0.2, 0.1], 1 / CLASSES, 1.0
    settings = {"decay": 0.5, "sharpness": sharpness, "unlabeled_weight": 2.0, "joint": joint}
    algorithm = SoftMatch(CLASSES, biased_debiaser(strength), **settings)
    for seed in range(1, 6):
        step = batch(seed=seed)
        losses = algorithm.losses(used, step)
        weak, strong = used.student(step.weak[0]).tolist(), used.student(step.strong[0]).tolist()
        labeling = [paper.debiased(row, prior, strength) for row in weak]
        prior = paper.moved_prior(prior, weak, 0.9)
        mean, variance = twin.moved(mean, variance, [max(row) for row in labeling], 0.5)
        total = 0.0
        for row, label in zip(strong, labeling, strict=True):
            weight = twin.weight(max(label), mean, variance, sharpness)
            total += weight * paper.marginal_loss(row, label.index(max(label)), prior, strength)
        assert losses["unlabeled"].item() == pytest.approx(2 * total / UNLABELED, rel=1e-5)
        torch.testing.assert_close(losses["labeled"], F.cross_entropy(used.student(step.labeled), step.labels))
        assert algorithm.mean.item() == pytest.approx(mean)
        assert algorithm.variance.item() == pytest.approx(variance)
    assert 0 < algorithm.monitors["kept"].sum() < UNLABELED
    assert 0 < algorithm.monitors["weight"] < 1


def test_alignment_as_published_changes_the_weights_alone():
    """UA(p) = norm(p * (1/C) / p-bar) decides the weight; the label is that of p."""
    used, step = models(), batch()
    prior = [0.4, 0.3, 0.2, 0.1]
    alignment = DistributionAlignment((8, 2, 1, 1), target="uniform")
    alignment.prior.copy_(torch.tensor(prior))
    algorithm = SoftMatch(CLASSES, alignment, decay=0.5, corrected_labels=False)
    loss = algorithm.losses(used, step)["unlabeled"]
    weak, strong = used.student(step.weak[0]).tolist(), used.student(step.strong[0]).tolist()
    raw = [paper.softmax(row) for row in weak]
    aligned = [[value / share for value, share in zip(row, prior, strict=True)] for row in raw]
    confidences = [max(row) / sum(row) for row in aligned]
    mean, variance = twin.moved(1 / CLASSES, 1.0, confidences, 0.5)
    total = sum(
        twin.weight(confidence, mean, variance, 2.0) * paper.cross_entropy(logits, row.index(max(row)))
        for logits, row, confidence in zip(strong, raw, confidences, strict=True)
    )
    assert loss.item() == pytest.approx(total / UNLABELED, rel=1e-5)
    labels = [row.index(max(row)) for row in raw]
    assert algorithm.monitors["pseudo_label"].tolist() == labels
    assert [row.index(max(row)) for row in aligned] != labels, "as a correction of labels it would change some"


def test_no_sharpness_is_fixmatch_without_a_threshold_bit_for_bit():
    used, step = models(), batch()
    expected = FixMatch(threshold=0).losses(used, step)
    for name, value in SoftMatch(CLASSES, sharpness=0).losses(used, step).items():
        assert torch.equal(value, expected[name])


def test_equal_confidences_and_a_single_image_give_no_nan():
    algorithm = SoftMatch(CLASSES, decay=0)
    algorithm.variance.zero_()
    algorithm.mean.fill_(0.5)
    assert algorithm.weights(torch.tensor([0.4, 0.5, 0.6])).tolist() == [0, 1, 1]
    step = batch()
    one = type(step)(step.labeled, step.labels, (step.weak[0][:1],), (step.strong[0][:1],))
    assert algorithm.losses(models(), one)["unlabeled"].isfinite()
    assert algorithm.variance == 0

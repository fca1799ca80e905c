"""SoftMatch, FlexMatch and FreeMatch: FixMatch with weights and thresholds that follow the model."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import Algorithm, Batch, FlexMatch, FreeMatch, SoftMatch
from debiaspl.debias import DistributionAlignment
from tests.algorithms.test_algorithms import CLASSES, PRIOR, UNLABELED, batch, biased_debiaser, models
from tests.reference import flexmatch, freematch, paper, softmatch

IMAGES = 40
Rows = list[list[float]]

both_ways = pytest.mark.parametrize("joint", [True, False])
strengths = pytest.mark.parametrize("strength", [0.0, 0.5])


def drawn(seed: int = 1) -> Batch:
    """A batch of images 0..39, of which some are drawn twice, as at the end of an epoch."""
    positions = torch.randint(IMAGES, (UNLABELED,), generator=torch.Generator().manual_seed(seed))
    assert len(positions.unique()) < UNLABELED
    return replace(batch(seed=seed), positions=positions)


def assert_steps(
    algorithm: Algorithm, strength: float, expected: Callable[[Batch, Rows, Rows, Rows], dict[str, float]]
) -> None:
    """Five steps with the losses that ``expected`` has for a batch, its labels, strong logits and the cost of each
    image with each class."""
    used, prior, kept = models(), PRIOR, 0
    for seed in range(1, 6):
        step = drawn(seed)
        losses = algorithm.losses(used, step)
        weak, strong = used.student(step.weak[0]).tolist(), used.student(step.strong[0]).tolist()
        labels = [paper.debiased(row, prior, strength) for row in weak]
        prior = paper.moved_prior(prior, weak, 0.9)
        costs = [[paper.marginal_loss(row, label, prior, strength) for label in range(CLASSES)] for row in strong]
        for name, value in expected(step, labels, strong, costs).items():
            assert losses[name].item() == pytest.approx(value, rel=1e-5), name
        torch.testing.assert_close(losses["labeled"], F.cross_entropy(used.student(step.labeled), step.labels))
        kept += int(algorithm.monitors["kept"].sum())
    assert 0 < kept < 5 * UNLABELED


@both_ways
@strengths
@pytest.mark.parametrize("sharpness", [1.0, 2.0])
def test_softmatch_equals_its_slow_twin(sharpness, strength, joint):
    settings = {"decay": 0.5, "sharpness": sharpness, "unlabeled_weight": 2.0, "joint": joint}
    algorithm = SoftMatch(CLASSES, biased_debiaser(strength), **settings)
    moments = 1 / CLASSES, 1.0

    def expected(_: Batch, labels: Rows, strong: Rows, costs: Rows) -> dict[str, float]:
        nonlocal moments
        moments = softmatch.moved(*moments, [max(row) for row in labels], 0.5)
        assert (algorithm.mean.item(), algorithm.variance.item()) == pytest.approx(moments)
        weights = [softmatch.weight(max(row), *moments, sharpness) for row in labels]
        total = sum(w * cost[row.index(max(row))] for w, row, cost in zip(weights, labels, costs, strict=True))
        return {"unlabeled": 2 * total / UNLABELED}

    assert_steps(algorithm, strength, expected)
    assert 0 < algorithm.monitors["weight"] < 1


@both_ways
@strengths
@pytest.mark.parametrize("warm_up", [True, False])
def test_flexmatch_equals_its_slow_twin(warm_up, strength, joint):
    settings = {"threshold": 0.7, "warm_up": warm_up, "joint": joint, "unlabeled_weight": 2.0}
    algorithm = FlexMatch(CLASSES, IMAGES, biased_debiaser(strength), **settings)
    latest = [0] * 13 + [1] * 9 + [2] * 5 + [-1] * 13  # some images are labeled already: thresholds are high enough
    algorithm.latest.copy_(torch.tensor(latest))

    def expected(step: Batch, labels: Rows, strong: Rows, costs: Rows) -> dict[str, float]:
        nonlocal latest
        of_class = flexmatch.thresholds(latest, CLASSES, 0.7, warm_up)
        latest = flexmatch.remembered(latest, step.positions.tolist(), labels, 0.7)
        assert algorithm.latest.tolist() == latest
        return {"unlabeled": 2 * flexmatch.unlabeled_loss(labels, costs, of_class)}

    assert_steps(algorithm, strength, expected)
    assert len(set(algorithm.thresholds().tolist())) > 1


@both_ways
@strengths
def test_freematch_equals_its_slow_twin(strength, joint):
    settings = {"decay": 0.7, "unlabeled_weight": 2.0, "fairness_weight": 0.5, "joint": joint}
    algorithm, averages = FreeMatch(CLASSES, biased_debiaser(strength), **settings), freematch.first(CLASSES)

    def expected(_: Batch, labels: Rows, strong: Rows, costs: Rows) -> dict[str, float]:
        nonlocal averages
        averages = freematch.moved(averages, labels, 0.7)
        assert algorithm.global_threshold.item() == pytest.approx(averages.threshold)
        torch.testing.assert_close(algorithm.marginal, torch.tensor(averages.marginal))
        torch.testing.assert_close(algorithm.histogram, torch.tensor(averages.histogram))
        of_class = freematch.thresholds(averages)
        fairness = freematch.fairness(averages, strong, [max(row) >= of_class[row.index(max(row))] for row in labels])
        return {"unlabeled": 2 * flexmatch.unlabeled_loss(labels, costs, of_class), "fairness": 0.5 * fairness}

    assert_steps(algorithm, strength, expected)


def test_alignment_as_published_changes_the_weights_alone():
    """UA(p) = norm(p * (1/C) / p-bar) decides the weight; the label is that of p."""
    used, step = models(), batch()
    alignment = DistributionAlignment((8, 2, 1, 1), target="uniform")
    alignment.prior.copy_(torch.tensor(PRIOR))
    algorithm = SoftMatch(CLASSES, alignment, decay=0.5, corrected_labels=False)
    loss = algorithm.losses(used, step)["unlabeled"]
    weak, strong = used.student(step.weak[0]).tolist(), used.student(step.strong[0]).tolist()
    raw = [paper.softmax(row) for row in weak]
    aligned = [[value / share for value, share in zip(row, PRIOR, strict=True)] for row in raw]
    confidences = [max(row) / sum(row) for row in aligned]
    mean, variance = softmatch.moved(1 / CLASSES, 1.0, confidences, 0.5)
    total = sum(
        softmatch.weight(confidence, mean, variance, 2.0) * paper.cross_entropy(logits, row.index(max(row)))
        for logits, row, confidence in zip(strong, raw, confidences, strict=True)
    )
    assert loss.item() == pytest.approx(total / UNLABELED, rel=1e-5)
    labels = [row.index(max(row)) for row in raw]
    assert algorithm.monitors["pseudo_label"].tolist() == labels
    assert [row.index(max(row)) for row in aligned] != labels, "as a correction of labels it would change some"


def test_equal_confidences_and_a_single_image_give_no_nan():
    algorithm = SoftMatch(CLASSES, decay=0)
    algorithm.variance.zero_()
    algorithm.mean.fill_(0.5)
    assert algorithm.weights(torch.tensor([0.4, 0.5, 0.6])).tolist() == [0, 1, 1]
    step = batch()
    one = type(step)(step.labeled, step.labels, (step.weak[0][:1],), (step.strong[0][:1],))
    assert algorithm.losses(models(), one)["unlabeled"].isfinite()
    assert algorithm.variance == 0


def test_an_image_that_is_twice_in_a_batch_keeps_its_last_confident_label():
    algorithm = FlexMatch(3, 5, threshold=0.9)
    positions = torch.tensor([1, 1, 2, 1, 2])
    algorithm._remember(positions, torch.tensor([0, 1, 2, 2, 0]), torch.tensor([True, True, True, False, False]))
    assert algorithm.latest.tolist() == [-1, 1, 2, -1, -1]


def test_the_fairness_loss_has_the_papers_sign():
    """Minus a cross-entropy: a step down the loss lowers a class that the averages want more of than was found."""
    algorithm = FreeMatch(2)
    strong = torch.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)  # found: more of class 0 than of class 1
    loss = algorithm._fairness(strong, torch.tensor([True, True]))
    assert loss < 0
    (gradient,) = torch.autograd.grad(loss, strong)
    assert (gradient[:, 1] > 0).all()


def test_nothing_kept_or_a_class_never_seen_gives_no_nan():
    algorithm = FreeMatch(3)
    strong = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = algorithm._fairness(strong, torch.zeros(5, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(loss, strong)
    assert loss == 0
    assert (gradient == 0).all()
    algorithm.histogram.copy_(torch.tensor([0.0, 0.5, 0.5]))
    algorithm.marginal.copy_(torch.tensor([1.0, 0.0, 0.0]))
    loss = algorithm._fairness(strong, torch.ones(5, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(loss, strong)
    assert loss.isfinite()
    assert gradient.isfinite().all()

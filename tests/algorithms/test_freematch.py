"""FreeMatch: thresholds that follow the model, and the fairness loss."""

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import FreeMatch
from tests.algorithms.test_algorithms import CLASSES, UNLABELED, batch, biased_debiaser, models
from tests.reference import freematch as twin
from tests.reference import paper


def kept_by_hand(labeling: list[list[float]], of_class: list[float]) -> list[bool]:
    return [max(row) >= of_class[row.index(max(row))] for row in labeling]


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_steps_equal_the_slow_twin(strength, joint):
    used, prior, averages = models(), [0.4, 0.3, 0.2, 0.1], twin.first(CLASSES)
    settings = {"decay": 0.7, "unlabeled_weight": 2.0, "fairness_weight": 0.5, "joint": joint}
    algorithm = FreeMatch(CLASSES, biased_debiaser(strength), **settings)
    kept_in_all = 0
    for seed in range(1, 6):
        step = batch(seed=seed)
        losses = algorithm.losses(used, step)
        weak, strong = used.student(step.weak[0]).tolist(), used.student(step.strong[0]).tolist()
        labeling = [paper.debiased(row, prior, strength) for row in weak]
        prior = paper.moved_prior(prior, weak, 0.9)
        averages = twin.moved(averages, labeling, 0.7)
        kept = kept_by_hand(labeling, twin.thresholds(averages))
        costs = [
            paper.marginal_loss(row, label.index(max(label)), prior, strength) if keep else 0.0
            for row, label, keep in zip(strong, labeling, kept, strict=True)
        ]
        assert losses["unlabeled"].item() == pytest.approx(2 * sum(costs) / UNLABELED, rel=1e-5)
        assert losses["fairness"].item() == pytest.approx(0.5 * twin.fairness(averages, strong, kept), rel=1e-5)
        torch.testing.assert_close(losses["labeled"], F.cross_entropy(used.student(step.labeled), step.labels))
        assert algorithm.global_threshold.item() == pytest.approx(averages.threshold)
        torch.testing.assert_close(algorithm.marginal, torch.tensor(averages.marginal))
        torch.testing.assert_close(algorithm.histogram, torch.tensor(averages.histogram))
        kept_in_all += sum(kept)
    assert 0 < kept_in_all < 5 * UNLABELED


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

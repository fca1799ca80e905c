"""FreeMatch: thresholds that follow the model, and the fairness loss."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from debiaspl.algorithms import Batch, FixMatch, FreeMatch, Models
from tests.algorithms.test_algorithms import CLASSES, UNLABELED, batch, biased_debiaser, models
from tests.reference import freematch as twin
from tests.reference import paper


def kept_by_hand(labeling: list[list[float]], of_class: list[float]) -> list[bool]:
    return [max(row) >= of_class[row.index(max(row))] for row in labeling]


def test_thresholds_by_hand():
    algorithm = FreeMatch(4)
    assert algorithm.thresholds().tolist() == [0.25] * 4
    algorithm.global_threshold.fill_(0.8)
    algorithm.marginal.copy_(torch.tensor([0.4, 0.3, 0.2, 0.1]))
    torch.testing.assert_close(algorithm.thresholds(), torch.tensor([0.8, 0.6, 0.4, 0.2]))


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


def test_the_fairness_loss_by_hand():
    """Two kept views, of classes 0 and 1; class 2 is absent, and the third view is not kept."""
    algorithm = FreeMatch(3)
    algorithm.marginal.copy_(torch.tensor([0.5, 0.3, 0.2]))
    algorithm.histogram.copy_(torch.tensor([0.5, 0.25, 0.25]))  # ratios 1, 1.2, 0.8: wanted 1/3, 0.4, 4/15
    strong = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.0, 0.0, 1.0]]).log()
    loss = algorithm._fairness(strong, torch.tensor([True, True, False]))
    found = torch.tensor([0.5 / 0.5, 0.35 / 0.5])
    found = found / found.sum()
    torch.testing.assert_close(loss, found[0].log() / 3 + 0.4 * found[1].log())


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


class Given(nn.Module):
    """The images are the logits."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.flatten(1)


def test_without_fairness_and_with_classes_alike_it_is_fixmatch_bit_for_bit():
    """Every row in all its rotations: no class is ahead, so that one threshold serves all."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(4, CLASSES, generator=generator) * torch.tensor([0.5, 1, 2, 4])[:, None]
    weak = torch.cat([rows.roll(turn, 1) for turn in range(CLASSES)])[:, :, None, None]
    strong = torch.randn(16, CLASSES, 1, 1, generator=generator)
    step = Batch(strong[:4], torch.arange(4), (weak,), (strong,))
    used = Models(Given(), Given())
    algorithm = FreeMatch(CLASSES, fairness_weight=0, decay=0)
    losses = algorithm.losses(used, step)
    assert 0 < algorithm.monitors["kept"].sum() < 16
    algorithm.marginal.fill_(1 / CLASSES)
    expected = FixMatch(threshold=algorithm.global_threshold.item()).losses(used, step)
    assert list(losses) == ["labeled", "unlabeled"]
    assert all(torch.equal(value, expected[name]) for name, value in losses.items())

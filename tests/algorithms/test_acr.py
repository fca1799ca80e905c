"""ACR: two classifiers, and an adjustment that follows the unlabeled images."""

import pytest
import torch
from torch import Tensor

from debiaspl.algorithms import ACR, Batch, Models
from debiaspl.debias import Debiaser
from tests.algorithms.test_algorithms import CLASSES, FEATURES, LABELED, UNLABELED, Features, batch
from tests.reference import acr as twin
from tests.reference.paper import cross_entropy

COUNTS = [40, 20, 8, 4]
LABELED_SHARES = [count / sum(COUNTS) for count in COUNTS]
KNOWN = {"num_classes": CLASSES, "num_features": FEATURES, "class_counts": COUNTS}


def made(correction=None, **settings) -> ACR:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        algorithm = ACR(**KNOWN, correction=correction, **{"threshold": 0.6, "momentum": 0.5, **settings})
    algorithm.balanced.head.weight.data.mul_(6)
    return algorithm


def drawn(seed: int, progress: float = 0.5) -> Batch:
    one, more = batch(seed=seed), batch(seed=seed + 100)
    return Batch(one.labeled, one.labels, one.weak, (*one.strong, *more.strong), progress=torch.tensor(progress))


@pytest.mark.parametrize("joint", [True, False])
def test_steps_equal_the_slow_twin(joint):
    student, algorithm = Features(), made(strong_views=2, unlabeled_weight=3.0, joint=joint, tau=1.5)
    estimate = [1 / CLASSES] * CLASSES

    def logits(images: Tensor, head) -> list[list[float]]:
        return head(student.embed(images)).tolist()

    for seed in range(4):
        step = drawn(seed)
        losses = algorithm.losses(Models(student, student), step)
        tau = twin.adapted(estimate, LABELED_SHARES, 1.5)
        assert algorithm.monitors["tau"].item() == pytest.approx(tau, rel=1e-4)
        weak, balanced = logits(step.weak[0], student.head), logits(step.weak[0], algorithm.balanced)
        for head, amount, second, name in (
            (student.head, tau, weak, "unlabeled"),
            (algorithm.balanced, 2.0, balanced, "balanced_unlabeled"),
        ):
            refined = [twin.adjusted(row, LABELED_SHARES, -amount) for row in weak]
            parts = [twin.unlabeled_loss(refined, second, logits(view, head), 0.6) for view in step.strong]
            assert losses[name].item() == pytest.approx(3 * sum(parts) / 2, rel=1e-4)
        expected = [
            cross_entropy(twin.adjusted(row, LABELED_SHARES, 2.0), label)
            for row, label in zip(logits(step.labeled, algorithm.balanced), step.labels.tolist(), strict=True)
        ]
        assert losses["balanced_labeled"].item() == pytest.approx(sum(expected) / LABELED, rel=1e-4)
        estimate = twin.moved(estimate, balanced, 0.6, 0.5)
        torch.testing.assert_close(algorithm.shares, torch.tensor(estimate))
    assert 0 < algorithm.monitors["kept"].sum() < UNLABELED


def test_labels_are_adjusted_less_where_unlabeled_images_are_like_the_labeled_ones():
    algorithm, now = made(), torch.tensor(0.5)
    found = []
    for shares in algorithm.anchors:
        algorithm.shares.copy_(shares)
        found.append(algorithm.adapted(now).item())
    assert found == sorted(found)
    assert algorithm.adapted(torch.tensor(0.0)) == 2  # before it is estimated


def test_reversed_is_by_rank_and_not_by_the_order_of_the_classes():
    anchors = ACR(3, FEATURES, [5, 1, 10]).anchors * 16
    torch.testing.assert_close(anchors[2], torch.tensor([5.0, 10.0, 1.0]))


def test_a_correction_acts_on_the_labels_of_both_and_learns_once():
    student, step = Features(), drawn(1)
    debiaser = Debiaser(CLASSES, momentum=0.5)
    algorithm = made(debiaser, strong_views=2)
    debiaser.prior.copy_(torch.tensor([0.01, 0.01, 0.01, 0.97]))
    plain = made(strong_views=2)
    plain.losses(Models(student, student), step)
    algorithm.losses(Models(student, student), step)
    assert not torch.equal(plain.monitors["pseudo_label"], algorithm.monitors["pseudo_label"])
    expected = Debiaser(CLASSES, momentum=0.5)
    expected.prior.copy_(torch.tensor([0.01, 0.01, 0.01, 0.97]))
    expected(student(step.weak[0]))
    torch.testing.assert_close(debiaser.prior, expected.prior)

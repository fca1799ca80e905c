"""Hints: labels for images that the student discards, or, from a graph, for all whatever the network says."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import Batch, FixMatch
from debiaspl.algorithms.taught import GraphLabels, TaughtFixMatch
from debiaspl.data import Hints
from tests.algorithms.test_algorithms import CLASSES, PRIOR, UNLABELED, batch, biased_debiaser, models
from tests.reference import paper

IMAGES = 20
LABELS = torch.arange(IMAGES) % (CLASSES + 1) - 1  # -1: none
SURE = torch.linspace(0, 1, IMAGES)


def drawn() -> Batch:
    """A batch of images 0..19."""
    return replace(batch(), positions=torch.randperm(IMAGES, generator=torch.Generator().manual_seed(0))[:UNLABELED])


def taught(labels: torch.Tensor, threshold: float = 0.6) -> TaughtFixMatch:
    hints = Hints(labels.clamp_min(0), torch.where(labels >= 0, 0.5, 0.3))
    return TaughtFixMatch(hints, biased_debiaser(), 0.4, threshold, unlabeled_weight=2.0)


def test_losses_against_plain_loops():
    own, used, seen, total, hinted = taught(LABELS), models(), drawn(), 0.0, 0
    losses = own.losses(used, seen)
    weak, strong = (used.student(views).tolist() for views in (seen.weak[0], seen.strong[0]))
    after = paper.moved_prior(PRIOR, weak, 0.9)
    for row, position in enumerate(seen.positions.tolist()):
        debiased = paper.debiased(weak[row], PRIOR, 0.5)
        label = debiased.index(max(debiased))
        if max(debiased) < 0.6:
            label = int(LABELS[position])
            hinted += label >= 0
        if label >= 0:
            total += paper.marginal_loss(strong[row], label, after, 0.5)
    assert hinted >= 2  # else nothing was tested
    assert losses["unlabeled"].item() == pytest.approx(2 * total / UNLABELED, rel=1e-5)
    assert float(own.monitors["taught"]) == pytest.approx(hinted / UNLABELED)


def test_a_sure_student_is_not_taught():
    for label in range(CLASSES):  # whatever it would be taught
        own = taught(torch.full((IMAGES,), label), threshold=0.0)
        plain = FixMatch(biased_debiaser(), threshold=0.0, unlabeled_weight=2.0)
        hinted, alone = (one.losses(models(), drawn()) for one in (own, plain))
        assert torch.equal(hinted["unlabeled"], alone["unlabeled"])
        assert torch.equal(own.monitors["pseudo_label"], plain.monitors["pseudo_label"])
        assert float(own.monitors["taught"]) == 0


@pytest.mark.parametrize("threshold", [0.0, 0.55])
def test_the_labels_of_a_graph_are_learned_whatever_the_network_says(threshold):
    """Another model's hints may have no label: these are left out."""
    own, used, seen = GraphLabels(Hints(LABELS, SURE), biased_debiaser(), threshold), models(), drawn()
    losses = own.losses(used, seen)
    weak, strong = (used.student(views).tolist() for views in (seen.weak[0], seen.strong[0]))
    prior, places = paper.moved_prior(PRIOR, weak, 0.9), seen.positions.tolist()
    kept = [row for row, place in enumerate(places) if LABELS[place] >= 0 and float(SURE[place]) >= threshold]
    total = sum(paper.marginal_loss(strong[row], int(LABELS[places[row]]), prior, 0.5) for row in kept)
    assert 0 < len(kept) < UNLABELED
    assert losses["unlabeled"].item() == pytest.approx(total / UNLABELED, rel=1e-5)
    torch.testing.assert_close(losses["labeled"], F.cross_entropy(used.student(seen.labeled), seen.labels))
    assert torch.equal(own.monitors["pseudo_label"][kept], LABELS[seen.positions][kept])


@pytest.mark.parametrize("kind", [TaughtFixMatch, GraphLabels])
def test_without_hints_it_says_what_to_do(kind):
    with pytest.raises(ValueError, match="zeroshot --labels"):
        kind()

"""Hints: labels for images that the student discards, or, from a graph, for all whatever the network says."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from debiaspl.algorithms import Batch, FixMatch, Models
from debiaspl.algorithms.taught import GraphLabels, TaughtFixMatch
from debiaspl.data import Hints
from debiaspl.debias import Debiaser
from debiaspl.models import Network
from tests.reference import paper

BEFORE = [0.6, 0.3, 0.1]


class Plain(Network):
    """Images are features."""

    def __init__(self) -> None:
        super().__init__()
        self.num_features = 4
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.head = nn.Linear(4, 3)

    def embed(self, images: Tensor) -> Tensor:
        return images.flatten(1)


def batch() -> Batch:
    draw = torch.Generator().manual_seed(1)
    labeled, weak, strong = (2 * torch.randn(size, 4, 1, 1, generator=draw) for size in (3, 6, 6))
    return Batch(labeled, torch.tensor([0, 1, 2]), (weak,), (strong,), positions=torch.tensor([7, 0, 3, 5, 2, 9]))


def debiaser() -> Debiaser:
    correction = Debiaser(3, strength=0.8, momentum=0.5)
    correction.prior.copy_(torch.tensor(BEFORE))
    return correction


def algorithm(taught: Tensor, threshold: float = 0.85) -> TaughtFixMatch:
    hints = Hints(taught.clamp_min(0), torch.where(taught >= 0, 0.5, 0.3))
    return TaughtFixMatch(hints, debiaser(), 0.4, threshold, unlabeled_weight=2.0).train()


def test_losses_against_plain_loops():
    taught = torch.tensor([1, -1, 0, -1, 2, 2, 0, 0, 1, -1])
    own, network, seen = algorithm(taught), Plain(), batch()
    losses = own.losses(Models(network, network), seen)

    weak, strong = (network(views).tolist() for views in (seen.weak[0], seen.strong[0]))
    after, total, used = paper.moved_prior(BEFORE, weak, 0.5), 0.0, 0
    for row, position in enumerate(seen.positions.tolist()):
        debiased = paper.debiased(weak[row], BEFORE, 0.8)
        label = debiased.index(max(debiased))
        if max(debiased) < 0.85:
            label = int(taught[position])
            used += label >= 0
        if label >= 0:
            total += paper.marginal_loss(strong[row], label, after, 0.8)
    assert used >= 2  # else nothing was tested
    torch.testing.assert_close(losses["unlabeled"], torch.tensor(2 * total / 6), atol=1e-5, rtol=1e-4)
    assert float(own.monitors["taught"]) == pytest.approx(used / 6)


def test_a_sure_student_is_not_taught():
    network, seen = Plain(), batch()
    for label in range(3):  # whatever it would be taught
        own = algorithm(torch.full((10,), label), threshold=0.0)
        plain = FixMatch(algorithm(own.taught).correction, threshold=0.0, unlabeled_weight=2.0).train()
        taught, alone = (one.losses(Models(network, network), seen) for one in (own, plain))
        assert torch.equal(taught["unlabeled"], alone["unlabeled"])
        assert torch.equal(own.monitors["pseudo_label"], plain.monitors["pseudo_label"])
        assert float(own.monitors["taught"]) == 0


LABELS = torch.tensor([1, 0, 0, 2, 2, 2, 0, 0, 1, 1])
SURE = torch.tensor([0.9, 0.2, 0.6, 0.95, 0.5, 0.7, 0.1, 0.4, 0.8, 0.3])


def graph(threshold: float = 0.0) -> GraphLabels:
    return GraphLabels(Hints(LABELS, SURE), debiaser(), threshold, unlabeled_weight=2.0).train()


@pytest.mark.parametrize("threshold", [0.0, 0.55])
def test_the_labels_of_a_graph_are_learned_whatever_the_network_says(threshold):
    own, network, seen = graph(threshold), Plain(), batch()
    losses = own.losses(Models(network, network), seen)

    weak, strong = (network(views).tolist() for views in (seen.weak[0], seen.strong[0]))
    prior, places = paper.moved_prior(BEFORE, weak, 0.5), seen.positions.tolist()
    used = [row for row, place in enumerate(places) if float(SURE[place]) >= threshold]
    total = sum(paper.marginal_loss(strong[row], int(LABELS[places[row]]), prior, 0.8) for row in used)
    assert len(used) == (6 if threshold == 0 else 4)
    torch.testing.assert_close(losses["unlabeled"], torch.tensor(2 * total / 6), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(losses["labeled"], F.cross_entropy(network(seen.labeled), seen.labels))
    assert torch.equal(own.monitors["pseudo_label"], LABELS[seen.positions])


def test_hints_without_a_label_are_left_out():
    seen, network = batch(), Plain()
    own = GraphLabels(Hints(torch.full_like(LABELS, -1), torch.zeros(10)))
    assert own.losses(Models(network, network), seen)["unlabeled"].item() == 0


@pytest.mark.parametrize("kind", [TaughtFixMatch, GraphLabels])
def test_without_hints_it_says_what_to_do(kind):
    with pytest.raises(ValueError, match="zeroshot --labels"):
        kind()

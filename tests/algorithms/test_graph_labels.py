"""GraphLabels: strong views learn the labels that the graph gave, whatever the network says."""

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import Models
from debiaspl.algorithms.taught import GraphLabels
from debiaspl.data import Hints
from tests.algorithms.test_taught import BEFORE, Plain, batch, debiaser
from tests.reference import paper

LABELS = torch.tensor([1, 0, 0, 2, 2, 2, 0, 0, 1, 1])
SURE = torch.tensor([0.9, 0.2, 0.6, 0.95, 0.5, 0.7, 0.1, 0.4, 0.8, 0.3])


def algorithm(threshold: float = 0.0) -> GraphLabels:
    return GraphLabels(Hints(LABELS, SURE), debiaser(), threshold, unlabeled_weight=2.0).train()


@pytest.mark.parametrize("threshold", [0.0, 0.55])
def test_losses_against_plain_loops(threshold):
    own, network, seen = algorithm(threshold), Plain(), batch()
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


def test_the_graph_s_labels_are_saved_with_the_run_and_something_must_give_them():
    assert {"taught", "sureness"} <= algorithm().state_dict().keys()
    with pytest.raises(ValueError, match="hints"):
        GraphLabels()

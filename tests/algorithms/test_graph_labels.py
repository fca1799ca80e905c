"""GraphLabels: strong views learn the labels that the graph gave, whatever the network says."""

import math

import pytest
import torch

from debiaspl.algorithms import Models
from debiaspl.algorithms.graph_labels import GraphLabels
from debiaspl.data import Hints
from debiaspl.debias import Debiaser
from tests.algorithms.test_taught import Plain, batch, softmax

LABELS = torch.tensor([1, 0, 0, 2, 2, 2, 0, 0, 1, 1])
SURE = torch.tensor([0.9, 0.2, 0.6, 0.95, 0.5, 0.7, 0.1, 0.4, 0.8, 0.3])


def algorithm(threshold: float = 0.0) -> GraphLabels:
    correction = Debiaser(3, strength=0.8, momentum=0.5)
    correction.prior.copy_(torch.tensor([0.6, 0.3, 0.1]))
    return GraphLabels(Hints(LABELS, SURE), correction, threshold, unlabeled_weight=2.0).train()


@pytest.mark.parametrize("threshold", [0.0, 0.55])
def test_losses_against_plain_loops(threshold):
    own, network, seen = algorithm(threshold), Plain(), batch()
    losses = own.losses(Models(network, network), seen)

    weak, strong = (network(views).tolist() for views in (seen.weak[0], seen.strong[0]))
    raw = [softmax(row) for row in weak]
    prior = [0.5 * old + 0.5 * sum(row[c] for row in raw) / 6 for c, old in enumerate([0.6, 0.3, 0.1])]
    total, used = 0.0, 0
    for row, position in enumerate(seen.positions.tolist()):
        if float(SURE[position]) < threshold:
            continue
        used += 1
        margin = softmax([value + 0.8 * math.log(share) for value, share in zip(strong[row], prior, strict=True)])
        total -= math.log(margin[int(LABELS[position])])
    assert used == (6 if threshold == 0 else 4)
    torch.testing.assert_close(losses["unlabeled"], torch.tensor(2 * total / 6), atol=1e-5, rtol=1e-4)
    given = [softmax(row) for row in network(seen.labeled).tolist()]
    labeled = -sum(math.log(row[label]) for row, label in zip(given, seen.labels.tolist(), strict=True)) / 3
    torch.testing.assert_close(losses["labeled"], torch.tensor(labeled), atol=1e-5, rtol=1e-4)
    assert torch.equal(own.monitors["pseudo_label"], LABELS[seen.positions])


def test_hints_without_a_label_are_left_out():
    seen, network = batch(), Plain()
    own = GraphLabels(Hints(torch.full_like(LABELS, -1), torch.zeros(10)))
    assert own.losses(Models(network, network), seen)["unlabeled"].item() == 0


def test_the_graph_s_labels_are_saved_with_the_run_and_something_must_give_them():
    assert {"taught", "sureness"} <= algorithm().state_dict().keys()
    with pytest.raises(ValueError, match="but this task has no such labels"):
        GraphLabels()

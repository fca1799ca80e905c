"""Labels spread over a graph of neighbours."""

import numpy as np
import pytest
import torch

from debiaspl.data import load
from debiaspl.graph import Graph
from tests.reference import graph as slow

FEW = 4


def drawn(count: int = 24) -> torch.Tensor:
    return torch.randn(count, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9])
def test_spread_labels_are_those_of_plain_loops(alpha):
    vectors, labels = drawn(), [-1] * 24
    for place, label in ((0, 0), (5, 0), (6, 0), (9, 1), (20, 2)):  # unequal numbers: each class sums to one
        labels[place] = label
    expected = slow.spread(vectors.tolist(), labels, 4, FEW, 3.0, alpha)
    found = Graph.of(vectors, FEW).spread(torch.tensor(labels), 4, alpha)
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-4)


def test_a_wider_search_leaves_the_graph_as_it_is_and_keeps_the_raw_weights():
    vectors = drawn()
    graph, wide = Graph.of(vectors, FEW), Graph.of(vectors, FEW, search=9)
    assert (graph.weights != wide.weights).nnz == 0
    near = slow.neighbours(vectors.tolist(), 9)
    assert wide.near.places.tolist() == [[place for place, _ in row] for row in near]
    expected = torch.tensor([[max(cosine, 0) ** 3 for _, cosine in row] for row in near])
    torch.testing.assert_close(wide.near.weights(), expected, rtol=0, atol=1e-5)
    assert Graph.of(vectors, FEW, search=99).near.places.shape == (24, 23)


def test_a_vector_that_no_label_reaches_has_even_probabilities():
    near = torch.tensor([[1.0, 0.1], [1.0, 0.2], [1.0, 0.3]])
    graph, labels = (
        Graph.of(torch.cat((near, near * torch.tensor([-1.0, 1.0]))), 2),
        torch.tensor([0, -1, -1, -1, -1, -1]),
    )
    found = graph.spread(labels, 2)
    assert found[:3].argmax(-1).tolist() == [0, 0, 0]
    torch.testing.assert_close(found[3:], torch.full((3, 2), 0.5))
    confidence, label = graph.most_likely(labels, 2)
    assert (confidence[3:].tolist(), label[3:].tolist()) == ([0.5] * 3, [0] * 3)


def test_many_classes_are_solved_in_parts_that_do_not_disturb_each_other(monkeypatch):
    labels = torch.full((24,), -1)
    labels[:20] = torch.arange(20)
    graph = Graph.of(drawn(), FEW)
    whole, likely = graph.spread(labels, 20), graph.most_likely(labels, 20)
    masses = torch.rand(20, dtype=torch.float64)
    weighed = whole * masses.float()
    confidence, label = graph.most_likely(labels, 20, masses=masses)
    assert torch.equal(label, weighed.argmax(-1))
    torch.testing.assert_close(confidence, (weighed / weighed.sum(-1, keepdim=True)).max(-1).values)
    monkeypatch.setattr("debiaspl.graph.spread.COLUMNS", 3)
    torch.testing.assert_close(graph.spread(labels, 20), whole, rtol=0, atol=1e-5)
    for confidence, label in (likely, graph.most_likely(labels, 20)):
        torch.testing.assert_close(confidence, whole.amax(-1), rtol=0, atol=1e-5)
        assert torch.equal(label, whole.argmax(-1))


def test_labels_of_a_large_class_do_not_flood_the_graph():
    """Two equal groups, one with nine labels, one with one: each keeps its own."""
    generator = torch.Generator().manual_seed(0)
    group = torch.arange(200) % 2
    vectors = torch.randn(200, 8, generator=generator) + 1.2 * (2.0 * group[:, None] - 1)
    labels = torch.full((200,), -1)
    labels[:18:2] = 0
    labels[1] = 1
    found = Graph.of(vectors).spread(labels, 2).argmax(-1)
    assert (found == group).float().mean() > 0.97


def test_digits_spread_four_labels_a_class_better_than_nearest_means():
    images = load("digits").train
    vectors, truth = images.images.flatten(1).float(), images.labels
    picked = np.concatenate([np.flatnonzero(truth.numpy() == number)[:4] for number in range(10)])
    labels = torch.full_like(truth, -1)
    labels[picked] = truth[picked]
    graph = Graph.of(vectors)
    means = torch.stack([graph.units[(labels == number)].mean(0) for number in range(10)])
    unknown = labels < 0
    by_means = ((graph.units @ means.T).argmax(-1) == truth)[unknown].double().mean()
    spread = graph.spread(labels, 10)
    by_graph = (spread.argmax(-1) == truth)[unknown].double().mean()
    assert by_graph > by_means + 0.05
    assert by_graph > 0.85
    test = load("digits").test
    carried = graph.carried(spread, test.images.flatten(1).float()).argmax(-1)
    assert (carried == test.labels).double().mean() > 0.85

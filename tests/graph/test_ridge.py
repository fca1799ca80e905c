"""A linear classifier of graph labels."""

import pytest
import torch

from debiaspl.data import load
from debiaspl.graph import Graph, ridge_weights
from tests.reference import graph as slow


def test_weights_are_those_of_gradient_descent():
    generator = torch.Generator().manual_seed(0)
    rows = torch.nn.functional.normalize(torch.randn(14, 3, generator=generator, dtype=torch.float64), dim=-1)
    labels = [0, 0, 0, 0, 0, 0, 1, 1, -1, 2, 2, 2, -1, 1]
    expected = slow.ridge(rows.tolist(), labels, 3, 0.1)
    found = ridge_weights(rows, torch.tensor(labels), 3, 0.1)
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-4)


def test_parts_change_nothing(monkeypatch):
    rows, labels = torch.eye(10)[torch.arange(40) % 10], torch.arange(40) % 4
    whole = ridge_weights(rows, labels, 4)
    monkeypatch.setattr("debiaspl.graph.ridge.CHUNK", 7)
    torch.testing.assert_close(ridge_weights(rows, labels, 4), whole, rtol=0, atol=1e-5)


def test_a_class_without_labels_is_never_chosen():
    rows = torch.eye(6)
    made = rows @ ridge_weights(rows, torch.tensor([0, 0, 2, 2, 2, -1]), 3).T
    assert made[:5].argmax(-1).tolist() == [0, 0, 2, 2, 2]
    assert not (made.argmax(-1) == 1)[:5].any()


def test_no_label_at_all_is_refused():
    with pytest.raises(ValueError, match="no row has a label"):
        ridge_weights(torch.eye(3), torch.full((3,), -1), 2)


def test_it_mends_mistakes_of_the_graph():
    """Digits, four labels a class: nearly as many are right as the graph had, from a tenth of the numbers; and more on
    average over draws."""
    images = load("digits").train
    truth = images.labels
    graph, gains = Graph.of(images.images.flatten(1).float()), []
    for seed in range(6):
        order = torch.randperm(len(truth), generator=torch.Generator().manual_seed(seed))
        labels = torch.full_like(truth, -1)
        for number in range(10):
            picked = order[truth[order] == number][:4]
            labels[picked] = number
        spread = graph.spread(labels, 10).argmax(-1)
        linear = (graph.units @ ridge_weights(graph.units, spread, 10).T).argmax(-1)
        gains.append(float((linear == truth).double().mean() - (spread == truth).double().mean()))
    assert sum(gains) / len(gains) > -0.02

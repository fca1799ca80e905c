"""Linear classifiers of vectors beside plain loops, and what the linear probe of CLIP holds out."""

import pytest
import torch
from torch import Tensor

from debiaspl.graph import logistic, probe_weights, ridge_weights
from debiaspl.graph.linear import held_out_shots
from tests.reference import graph as slow_graph, logistic as slow


def drawn(per_class: int, classes: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes * per_class) % classes
    centres = torch.randn(classes, 4, generator=generator, dtype=torch.float64)
    return centres[labels] + torch.randn(len(labels), 4, generator=generator, dtype=torch.float64), labels


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("cost", [1e-3, 1.0, 100.0])
def test_no_change_of_a_weight_makes_the_objective_smaller(cost, balanced):
    rows, labels = drawn(5)
    rows, labels = rows[:-2], labels[:-2]  # not as many of each class
    fitted = logistic(rows, labels, 3, cost, balanced)

    def objective(weights: list[list[float]]) -> float:
        return slow.objective(weights, rows.tolist(), labels.tolist(), cost, balanced)

    weights = torch.cat((fitted.weight, fitted.bias[:, None]), 1).tolist()
    least = objective(weights)
    for number in range(3):
        for column in range(5):
            for change in (-1e-2, 1e-2):
                moved = [list(weight) for weight in weights]
                moved[number][column] += change
                assert objective(moved) > least


def test_a_start_changes_little_and_a_class_may_have_no_label():
    rows, labels = drawn(8)
    cold = logistic(rows, labels, 4, 30.0, balanced=True)
    warm = logistic(rows, labels, 4, 30.0, True, start=logistic(rows[::2], labels[::2], 4, 30.0))
    torch.testing.assert_close(cold.weight, warm.weight, rtol=1e-3, atol=1e-3)
    assert set(cold.predict(rows).tolist()) == {0, 1, 2}


@pytest.mark.parametrize("labels", [[0, 1, 0, 1, 0, 2], [0] * 20 + [1] * 3, [2, 1, 0]])
def test_up_to_four_labels_of_a_class_are_held_out_but_never_more_than_half(labels):
    assert held_out_shots(torch.tensor(labels)).tolist() == slow.held_out(labels)


@pytest.mark.parametrize("seed", range(3))
def test_the_penalty_is_that_of_the_slow_search(seed):
    rows, labels = drawn(12, seed=seed)
    out = held_out_shots(labels)

    def accuracy(power: float) -> float:
        fitted = logistic(rows[~out], labels[~out], 3, 10**power)
        return float((fitted.predict(rows[out]) == labels[out]).double().mean())

    expected = logistic(rows, labels, 3, 10 ** slow.best_power(accuracy))
    weight, bias = probe_weights(rows, labels, 3)
    torch.testing.assert_close(weight, expected.weight.float())
    torch.testing.assert_close(bias, expected.bias.float())


def test_a_class_without_a_label_is_never_predicted_and_one_label_each_is_enough():
    rows, labels = drawn(1)
    weight, bias = probe_weights(rows.float(), 2 * labels, 6)
    assert bias.isinf().tolist() == [False, True] * 3
    assert (rows.float() @ weight.T + bias).argmax(-1).tolist() == (2 * labels).tolist()


def test_weights_are_those_of_gradient_descent():
    generator = torch.Generator().manual_seed(0)
    rows = torch.nn.functional.normalize(torch.randn(14, 3, generator=generator, dtype=torch.float64), dim=-1)
    labels = [0, 0, 0, 0, 0, 0, 1, 1, -1, 2, 2, 2, -1, 1]
    expected = slow_graph.ridge(rows.tolist(), labels, 3, 0.1)
    found = ridge_weights(rows, torch.tensor(labels), 3, 0.1)
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-4)


def test_parts_change_nothing(monkeypatch):
    rows, labels = torch.eye(10)[torch.arange(40) % 10], torch.arange(40) % 4
    whole = ridge_weights(rows, labels, 4)
    monkeypatch.setattr("debiaspl.graph.linear.CHUNK", 7)
    torch.testing.assert_close(ridge_weights(rows, labels, 4), whole, rtol=0, atol=1e-5)


def test_a_class_without_labels_is_never_chosen():
    rows = torch.eye(6)
    made = rows @ ridge_weights(rows, torch.tensor([0, 0, 2, 2, 2, -1]), 3).T
    assert made[:5].argmax(-1).tolist() == [0, 0, 2, 2, 2]
    assert not (made.argmax(-1) == 1)[:5].any()

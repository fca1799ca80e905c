"""CLIP's linear probe: the minimum, the labels that are held out, and the penalty that they choose."""

import pytest
import torch
from torch import Tensor

from debiaspl.graph import probe_weights
from debiaspl.graph.logistic import held_out_shots, logistic
from tests.reference import probe


def drawn(per_class: int, classes: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes * per_class) % classes
    centres = torch.randn(classes, 4, generator=generator, dtype=torch.float64)
    return centres[labels] + torch.randn(len(labels), 4, generator=generator, dtype=torch.float64), labels


@pytest.mark.parametrize("cost", [1e-3, 1.0, 100.0])
def test_no_change_of_a_weight_makes_the_objective_smaller(cost):
    rows, labels = drawn(5)
    weights = logistic(rows, labels, cost).tolist()
    data = rows.tolist(), labels.tolist()
    least = probe.objective(weights, *data, cost)
    for number in range(3):
        for column in range(5):
            for change in (-1e-2, 1e-2):
                moved = [list(weight) for weight in weights]
                moved[number][column] += change
                assert probe.objective(moved, *data, cost) > least


@pytest.mark.parametrize("labels", [[0, 1, 0, 1, 0, 2], [0] * 20 + [1] * 3, [2, 1, 0]])
def test_up_to_four_labels_of_a_class_are_held_out_but_never_more_than_half(labels):
    assert held_out_shots(torch.tensor(labels)).tolist() == probe.held_out(labels)


@pytest.mark.parametrize("seed", range(3))
def test_the_penalty_is_that_of_the_slow_search(seed):
    rows, labels = drawn(12, seed=seed)
    out = held_out_shots(labels)

    def accuracy(power: float) -> float:
        weights = logistic(rows[~out], labels[~out], 10**power)
        scores = rows[out] @ weights[:, :-1].T + weights[:, -1]
        return float((scores.argmax(-1) == labels[out]).double().mean())

    expected = logistic(rows, labels, 10 ** probe.best_power(accuracy)).float()
    weight, bias = probe_weights(rows, labels, 3)
    torch.testing.assert_close(weight, expected[:, :-1])
    torch.testing.assert_close(bias, expected[:, -1])


def test_a_class_without_a_label_is_never_predicted_and_one_label_each_is_enough():
    rows, labels = drawn(1)
    weight, bias = probe_weights(rows.float(), 2 * labels, 6)
    assert bias.isinf().tolist() == [False, True] * 3
    assert (rows.float() @ weight.T + bias).argmax(-1).tolist() == (2 * labels).tolist()

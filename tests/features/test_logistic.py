"""Logistic regression beside its definition in plain loops."""

import pytest
import torch

from debiaspl.features.shares import TRUST, logistic
from tests.reference.logistic import cost

BOX = torch.Generator().manual_seed(0)
LABEL = torch.tensor([0] * 12 + [1] * 5 + [2] * 3)
ROWS = torch.nn.functional.normalize(torch.randn(20, 6, generator=BOX) + torch.eye(6)[LABEL], dim=-1)


@pytest.mark.parametrize("balanced", [False, True])
def test_no_other_weights_cost_less(balanced: bool) -> None:
    weights, bias = logistic(ROWS, LABEL, 3, balanced)

    def of(weights: torch.Tensor, bias: torch.Tensor) -> float:
        return cost(ROWS.tolist(), LABEL.tolist(), weights.tolist(), bias.tolist(), TRUST, balanced)

    best = of(weights, bias)
    for _ in range(20):
        step = torch.randn(3, 7, generator=BOX)
        step *= 0.3 / step.norm()
        assert of(weights + step[:, :6], bias + step[:, 6]) > best


def test_a_start_changes_little() -> None:
    cold = logistic(ROWS, LABEL, 3)
    warm = logistic(ROWS, LABEL, 3, start=logistic(ROWS[::2], LABEL[::2], 3))
    chance = [(ROWS @ weights.T + bias).softmax(-1) for weights, bias in (cold, warm)]
    assert float((chance[0] - chance[1]).abs().max()) < 0.02


def test_a_class_without_a_label_is_allowed() -> None:
    weights, bias = logistic(ROWS, LABEL, 4, balanced=True)
    assert 3 not in (ROWS @ weights.T + bias).argmax(-1).tolist()

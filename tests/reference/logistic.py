"""Logistic regression with a penalty, from its definition, with plain loops."""

import math
from collections.abc import Sequence


def cost(
    rows: Sequence[Sequence[float]],
    label: Sequence[int],
    weights: Sequence[Sequence[float]],
    bias: Sequence[float],
    trust: float,
    balanced: bool,
) -> float:
    """``trust`` times the summed cross-entropy plus half of the squared weights. Balanced: the labels of every class
    weigh as much as all labels divided by the classes that have some."""
    total = 0.0
    for row, own in zip(rows, label, strict=True):
        scores = [
            sum(a * b for a, b in zip(row, vector, strict=True)) + c for vector, c in zip(weights, bias, strict=True)
        ]
        chance = math.exp(scores[own]) / sum(map(math.exp, scores))
        share = len(label) / (len(set(label)) * list(label).count(own)) if balanced else 1.0
        total -= trust * share * math.log(chance)
    return total + sum(value * value for vector in weights for value in vector) / 2

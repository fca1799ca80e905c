"""Logistic regression and the search of the linear probe, with plain loops over Python floats."""

import math
from collections.abc import Callable

from tests.reference.paper import Vector, cross_entropy


def objective(weights: list[Vector], rows: list[Vector], labels: list[int], cost: float, balanced: bool) -> float:
    """|W|^2 / 2 + c * sum of cross-entropies; the last weight of a class is its bias, without a penalty. Balanced: the
    labels of every class weigh as much as all labels divided by the classes that have some."""
    total = sum(value**2 for weight in weights for value in weight[:-1]) / 2
    for row, label in zip(rows, labels, strict=True):
        logits = [sum(a * b for a, b in zip(weight, [*row, 1.0], strict=True)) for weight in weights]
        share = len(labels) / (len(set(labels)) * labels.count(label)) if balanced else 1.0
        total += cost * share * cross_entropy(logits, label)
    return total


def held_out(labels: list[int]) -> list[bool]:
    """Up to four of each class, but at most half, from the end."""
    left = {label: min(4, labels.count(label) // 2) for label in labels}
    chosen = []
    for label in reversed(labels):
        chosen.append(left[label] > 0)
        left[label] -= 1
    return chosen[::-1]


def best_power(accuracy: Callable[[float], float]) -> float:
    """The exponent of c: powers of 100 from -6 to 6, then eight bisections around the best."""
    tried = {float(power): accuracy(float(power)) for power in range(-6, 7, 2)}
    best = min(power for power in tried if tried[power] == max(tried.values()))
    low, high = max(best - 1, -6.0), min(best + 1, 6.0)
    for _ in range(8):
        for power in (low, high):
            tried[power] = accuracy(power)
        if tried[low] < tried[high]:
            low = (low + high) / 2
        else:
            high = (low + high) / 2
    return min(power for power in tried if tried[power] == max(tried.values()))


def of_mean_length(
    rows: list[Vector], mean: Vector, gain: float, weight: list[Vector], bias: Vector, temperature: float
) -> list[Vector]:
    """Logits / T of a classifier of gain (x - mean) / length, with the mean length of all rows in place of each."""
    centred = [[value - middle for value, middle in zip(row, mean, strict=True)] for row in rows]
    length = sum(math.sqrt(sum(value**2 for value in row)) for row in centred) / len(rows)
    return [
        [
            (gain / length * sum(w * x for w, x in zip(own, row, strict=True)) + shift) / temperature
            for own, shift in zip(weight, bias, strict=True)
        ]
        for row in centred
    ]

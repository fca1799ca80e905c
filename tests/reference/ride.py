"""RIDE's loss with plain loops over Python floats."""

import math

from tests.reference.paper import Vector, softmax


def temperatures(counts: list[int], share: float) -> Vector:
    """gamma * C n_c / n + 1 - gamma, over the largest."""
    raw = [share * len(counts) * count / sum(counts) + 1 - share for count in counts]
    return [value / max(raw) for value in raw]


def divergence(experts: list[Vector], temperature: Vector) -> float:
    """Of one image, summed over experts: T-bar^2 KL(mean of the experts, expert), with a temperature for each class."""
    mean = [sum(column) / len(experts) for column in zip(*experts, strict=True)]
    target = softmax([value / t for value, t in zip(mean, temperature, strict=True)])
    total = 0.0
    for expert in experts:
        own = softmax([value / t for value, t in zip(expert, temperature, strict=True)])
        total += sum(p * math.log(p / q) for p, q in zip(target, own, strict=True))
    return (sum(temperature) / len(temperature)) ** 2 * total

"""PAWS (Assran et al., 2021) with plain loops over Python floats, from the paper."""

import math

from tests.reference.comatch import dot, normalised
from tests.reference.paper import Vector


def prediction(
    view: Vector, support: list[Vector], labels: list[int], classes: int, temperature: float, smoothing: float
) -> Vector:
    """Soft nearest neighbours; of n support images of a class, each counts 1 / n."""
    totals, whole = [0.0] * classes, 0.0
    for other, label in zip(support, labels, strict=True):
        power = math.exp(dot(normalised(view), normalised(other)) / temperature) / labels.count(label)
        whole += power
        for number in range(classes):
            share = (1 - smoothing) * (number == label) + smoothing / classes
            totals[number] += power * share
    return [total / whole for total in totals]


def sharpened(probabilities: Vector, temperature: float) -> Vector:
    powers = [value ** (1 / temperature) for value in probabilities]
    return [power / sum(powers) for power in powers]


def cross_entropy(target: Vector, predicted: Vector) -> float:
    return -sum(share * math.log(value) for share, value in zip(target, predicted, strict=True))


def consistency(first: list[Vector], second: list[Vector], sharpening: float) -> float:
    """Predictions of two views: each learns the sharpened prediction of the other."""
    total = 0.0
    for one, other in zip(first, second, strict=True):
        total += cross_entropy(sharpened(other, sharpening), one)
        total += cross_entropy(sharpened(one, sharpening), other)
    return total / (2 * len(first))


def entropy_of_mean(predictions: list[Vector], sharpening: float) -> float:
    sharp = [sharpened(one, sharpening) for one in predictions]
    mean = [sum(column) / len(sharp) for column in zip(*sharp, strict=True)]
    return -sum(share * math.log(share) for share in mean)

"""Measures of features with plain loops over Python floats, from the papers."""

import math
from itertools import combinations

import numpy as np

from tests.reference.comatch import dot, normalised
from tests.reference.paper import Vector


def effective_rank(features: list[Vector]) -> float:
    """Roy and Vetterli (2007), definition 2.1, of the centred features: exp of the entropy of sigma_k / sum sigma."""
    means = [sum(column) / len(features) for column in zip(*features, strict=True)]
    centred = [[value - mean for value, mean in zip(row, means, strict=True)] for row in features]
    singular = [float(value) for value in np.linalg.svd(np.array(centred), compute_uv=False)]
    shares = [value / sum(singular) for value in singular]
    return math.exp(-sum(share * math.log(share) for share in shares if share > 0))


def spread(features: list[Vector]) -> float:
    """Chen and He (2021), section 4.1: the deviation of each channel of z / |z|, averaged, in units of 1 / sqrt(D)."""
    deviations = []
    for column in zip(*map(normalised, features), strict=True):
        mean = sum(column) / len(column)
        deviations.append(math.sqrt(sum((value - mean) ** 2 for value in column) / len(column)))
    return sum(deviations) / len(deviations) * math.sqrt(len(deviations))


def distance(one: Vector, other: Vector) -> float:
    """Squared."""
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def alignment(first: list[Vector], second: list[Vector]) -> float:
    """Wang and Isola (2020), equation 1 with alpha = 2."""
    pairs = zip(map(normalised, first), map(normalised, second), strict=True)
    return sum(distance(one, other) for one, other in pairs) / len(first)


def overlap(first: list[Vector], second: list[Vector]) -> float:
    """Distances of views of one image, over those of the first view of one and the second view of another."""
    one, other = [normalised(row) for row in first], [normalised(row) for row in second]
    same = [distance(one[place], other[place]) for place in range(len(one))]
    different = [distance(one[i], other[j]) for i in range(len(one)) for j in range(len(one)) if i != j]
    return (sum(same) / len(same)) / (sum(different) / len(different))


def uniformity(features: list[Vector]) -> float:
    """Wang and Isola (2020), equation 2 with t = 2, over pairs of different images."""
    kernels = [math.exp(-2 * distance(one, other)) for one, other in combinations(map(normalised, features), 2)]
    return math.log(sum(kernels) / len(kernels))


def nearest_neighbour_accuracy(features: list[Vector], labels: list[int]) -> float | None:
    """Leave one out: the label of the other image with the largest cosine."""
    units, right = [normalised(row) for row in features], []
    for place, label in enumerate(labels):
        others = [number for number in range(len(labels)) if number != place]
        if all(labels[number] != label for number in others):
            continue
        nearest = max(others, key=lambda number: dot(units[place], units[number]))
        right.append(labels[nearest] == label)
    return sum(right) / len(right) if right else None

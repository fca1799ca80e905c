"""Measures of features with plain loops over Python floats, from the papers."""

import math

import numpy as np

from tests.reference.comatch import normalised
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

"""CReST and CReST+ (Wei et al., 2021) with plain loops over Python numbers."""

import math

from tests.reference.paper import Vector


def sampling_rates(counts: list[int], alpha: float) -> Vector:
    """mu_l = (N_{L+1-l} / N_1) ** alpha, the classes sorted by their labels, the most frequent first."""
    ranked = sorted(range(len(counts)), key=lambda number: (-counts[number], number))
    rates = [0.0] * len(counts)
    for l in range(1, len(counts) + 1):  # noqa: E741 - the paper's letter
        rates[ranked[l - 1]] = (counts[ranked[len(counts) - l]] / counts[ranked[0]]) ** alpha
    return rates


def adopted(probabilities: list[Vector], rates: Vector) -> list[int]:
    """Of the images predicted as a class, the most confident ones, as many as its rate allows."""
    labels = [-1] * len(probabilities)
    for number, rate in enumerate(rates):
        own = [(max(row), place) for place, row in enumerate(probabilities) if row.index(max(row)) == number]
        own.sort(key=lambda pair: -pair[0])
        for _, place in own[: math.floor(rate * len(own) + 1e-6)]:
            labels[place] = number
    return labels


def aligned_target(shares: Vector, generation: int, last: int, final: float) -> Vector:
    """p ** t_g, normalised, with t_g = (1 - g / G) + (g / G) t_min."""
    temperature = (1 - generation / last) * 1.0 + generation / last * final
    powers = [share**temperature for share in shares]
    return [power / sum(powers) for power in powers]

"""Tests of a few runs: Student's t interval of a mean, and the exact sign-flip test of paired differences."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

LEVEL = 0.95
MIN_PAIRS = 6
"""The fewest paired runs that are tested: of five, no sign-flip test has a p value below 0.06."""


def mean_interval(values: Sequence[float], finest: float = 0.0) -> tuple[float, float] | None:
    """The 95 % interval of the mean, for independent, normally distributed values, which a few runs can neither confirm
    nor refute; None for fewer than two values. ``finest`` is their resolution: equal values show no smaller spread."""
    if len(values) < 2:
        return None
    from scipy.special import stdtrit  # not every command needs it

    middle, spread = statistics.fmean(values), max(statistics.stdev(values), finest)
    half = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2)) * spread / math.sqrt(len(values))
    return middle - half, middle + half


def sign_flip(differences: Sequence[float]) -> float:
    """The p value of the exact sign-flip permutation test, two-sided: the share of all signs of the paired differences
    whose sum is at least as far from 0 as theirs."""
    # Of each sum; equal ones are counted, not listed: accuracies are multiples of one image.
    ways: Mapping[float, int] = {0.0: 1}
    for value in differences:
        more: Counter[float] = Counter()
        for total, count in ways.items():
            more[round(total + value, 12)] += count
            more[round(total - value, 12)] += count
        ways = more
    far = sum(count for total, count in ways.items() if abs(total) >= abs(sum(differences)) - 1e-9)
    return far / sum(ways.values())

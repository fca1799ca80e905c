"""Student's t intervals, 95 %: of a mean, and of the number that one more run would give.

Both assume independent, normally distributed runs, which a few folds can neither confirm nor refute. scipy
is imported where it is used: not every command needs it.
"""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

LEVEL = 0.95
MIN_PAIRS = 6
"""The fewest paired runs that are tested: of five, no sign-flip test has a p value below 0.06."""


def mean_interval(values: Sequence[float], finest: float = 0.0) -> tuple[float, float] | None:
    """The 95 % interval of the mean; None for fewer than two values, which have no spread.

    ``finest`` is the resolution of the values: equal values do not show a smaller spread.
    """
    return _interval(values, finest, 1 / max(len(values), 1))


def next_interval(values: Sequence[float], finest: float = 0.0) -> tuple[float, float] | None:
    """The 95 % interval of one further run (a prediction interval); None for fewer than two values."""
    return _interval(values, finest, 1 + 1 / max(len(values), 1))


def _interval(values: Sequence[float], finest: float, variance: float) -> tuple[float, float] | None:
    """The mean, plus and minus t s sqrt(variance)."""
    if len(values) < 2:
        return None
    from scipy.special import stdtrit

    middle, spread = statistics.fmean(values), max(statistics.stdev(values), finest)
    half = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2)) * spread * math.sqrt(variance)
    return middle - half, middle + half


def sign_flip(differences: Sequence[float]) -> float:
    """The p value of the exact sign-flip permutation test, two-sided: the share of all signs of the paired differences
    whose sum is at least as far from 0 as theirs."""
    ways: Mapping[float, int] = {
        0.0: 1
    }  # of each sum; equal ones are counted, not listed: accuracies are multiples of one image
    for value in differences:
        more: Counter[float] = Counter()
        for total, count in ways.items():
            more[round(total + value, 12)] += count
            more[round(total - value, 12)] += count
        ways = more
    far = sum(count for total, count in ways.items() if abs(total) >= abs(sum(differences)) - 1e-9)
    return far / sum(ways.values())

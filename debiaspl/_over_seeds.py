"""Means over the seeds of a method, and paired differences to another method with their interval and test."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

LEVEL = 0.95
MIN_PAIRS = 6
"""The fewest paired runs that are tested: of five, no sign-flip test has a p value below 0.06."""


def paired_test(differences: Sequence[float], finest: float = 0.0) -> dict[str, Any]:
    """How many are above 0, their interval (see ``finest`` there) and the p value of the sign-flip test; None for fewer
    than six pairs."""
    enough = len(differences) >= MIN_PAIRS
    return {
        "better_on": sum(value > 0 for value in differences),
        "interval": mean_interval(differences, finest) if enough else None,
        "p": sign_flip(differences) if enough else None,
    }


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


def in_brackets(difference: Mapping[str, Any]) -> str:
    """Each difference in points, or the interval and p of six or more."""
    if difference["interval"] is None:
        return ", ".join(f"{100 * value:+.1f}" for value in difference["per_seed"])
    low, high = (f"{100 * value:+.1f}" for value in difference["interval"])
    return f"{low} to {high}, p = {difference['p']:.2g}"


def summary(values: Sequence[float]) -> dict[str, Any] | None:
    """Mean, sample standard deviation and median, with the single values; None without values."""
    if not values:
        return None
    return {
        "mean": round(statistics.fmean(values), 12),  # 0.9545, not 0.9544999...: a page and a terminal print the same
        "deviation": statistics.stdev(values) if len(values) > 1 else None,
        "median": statistics.median(values),
        "per_seed": list(values),
    }


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table; the first line is its header."""
    header, *rows = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ("---",) * len(header), *rows)) + "\n"

"""Means over the seeds of a method, and paired differences to another method: each seed, or Student's t interval of
the mean and the exact sign-flip test."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from debiaspl._measures import pseudo_measures

LEVEL = 0.95
MIN_PAIRS = 6
"""The fewest paired runs that are tested: of five, no sign-flip test has a p value below 0.06."""
Results = Sequence[Mapping[str, Any]]
"""One per seed."""
EACH_NOTE = "In brackets: the paired difference of each seed; a test needs six or more seeds."
TEST_NOTE = (
    "In brackets: the 95 % interval of the paired difference over seeds, by Student's t, and the p value of the exact "
    "sign-flip permutation test."
)


def measured(runs: Results, baseline: Results | None) -> dict[str, Any]:
    """Means of one method, and its difference to the same seeds of the baseline, if there is one."""
    pairs = [] if baseline is None else zip(runs, baseline, strict=True)
    differences = [run["accuracy"] - base["accuracy"] for run, base in pairs]
    difference = summary(differences)
    pseudo = [one for one in map(pseudo_measures, runs) if one]
    return {
        "accuracy": summary([run["accuracy"] for run in runs]),
        "difference": difference and {**difference, **paired_test(differences)},
        "worst_recall": summary([run["worst_recall"] for run in runs]),
        "pseudo_distance": summary([one["distance"] for one in pseudo]),
        "pseudo_almost_none": summary([one["almost_none"] for one in pseudo]),
    }


def paired_test(differences: Sequence[float], finest: float = 0.0) -> dict[str, Any]:
    """How many are above 0, their interval and the p value of the sign-flip test; None for fewer than six pairs.

    ``finest`` is the resolution of the differences, for the interval.
    """
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


def difference_heading(baseline: str, seeds: int) -> str:
    return f"{baseline} ({'95 % t, p' if seeds >= MIN_PAIRS else 'each seed'})"


def difference_note(seeds: int) -> str:
    """What is in the brackets behind a paired difference."""
    return TEST_NOTE if seeds >= MIN_PAIRS else EACH_NOTE


def with_pairs(difference: Mapping[str, Any]) -> str:
    """A mean paired difference in points; in brackets each seed, or the interval and p of six seeds or more."""
    mean, each = f"{100 * difference['mean']:+.1f}", difference["per_seed"]
    return mean if len(each) == 1 else f"{mean} ({in_brackets(difference)})"


def in_brackets(difference: Mapping[str, Any]) -> str:
    """Each difference in points, or the interval and p of six or more."""
    if difference["interval"] is None:
        return ", ".join(f"{100 * value:+.1f}" for value in difference["per_seed"])
    low, high = (f"{100 * value:+.1f}" for value in difference["interval"])
    return f"{low} to {high}, p = {difference['p']:.2g}"


def with_spread(numbers: Mapping[str, Any]) -> str:
    """In %; one seed has no spread."""
    mean, deviation = f"{100 * numbers['mean']:.1f}", numbers["deviation"]
    return mean if deviation is None else f"{mean} ± {100 * deviation:.1f}"


def summary(values: Sequence[float]) -> dict[str, Any] | None:
    """Mean, sample standard deviation and median, with the single values; None without values."""
    if not values:
        return None
    return {
        "mean": statistics.fmean(values),
        "deviation": statistics.stdev(values) if len(values) > 1 else None,
        "median": statistics.median(values),
        "per_seed": list(values),
    }


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table; the first line is its header."""
    header, *rows = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ("---",) * len(header), *rows)) + "\n"

"""Means over the seeds of a method, and paired differences to another method: each seed, or an interval and a test."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from debiaspl._shares import pseudo_measures
from debiaspl.report.intervals import MIN_PAIRS, mean_interval, sign_flip

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

"""Means over the seeds of a method, and paired differences to another method, with intervals."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from debiaspl._shares import pseudo_measures
from debiaspl.report.intervals import mean_interval

Results = Sequence[Mapping[str, Any]]
"""One per seed."""
INTERVAL = "95 % t"
INTERVAL_NOTE = (
    "In brackets: the 95 % interval of the paired difference over seeds, by Student's t. n.s.: not significant, the "
    "interval contains 0."
)


def measured(runs: Results, baseline: Results | None) -> dict[str, Any]:
    """Means of one method, and its difference to the same seeds of the baseline, if there is one."""
    pairs = [] if baseline is None else zip(runs, baseline, strict=True)
    differences = [run["accuracy"] - base["accuracy"] for run, base in pairs]
    difference = summary(differences)
    pseudo = [one for one in map(pseudo_measures, runs) if one]
    return {
        "accuracy": summary([run["accuracy"] for run in runs]),
        "difference": difference and {**difference, **_sureness(differences)},
        "worst_recall": summary([run["worst_recall"] for run in runs]),
        "pseudo_distance": summary([one["distance"] for one in pseudo]),
        "pseudo_almost_none": summary([one["almost_none"] for one in pseudo]),
    }


def _sureness(differences: Sequence[float]) -> dict[str, Any]:
    interval = mean_interval(differences)
    return {
        "better_on": sum(value > 0 for value in differences),
        "interval": interval,
        "significant": interval is not None and not interval[0] <= 0 <= interval[1],
    }


def with_interval(difference: Mapping[str, Any]) -> str:
    """A paired difference in points, with its interval; one seed has none."""
    if difference["interval"] is None:
        return f"{100 * difference['mean']:+.1f}"
    low, high = (f"{100 * value:+.1f}" for value in difference["interval"])
    return f"{100 * difference['mean']:+.1f} ({low} to {high}){'' if difference['significant'] else ' n.s.'}"


def with_spread(numbers: Mapping[str, Any], form: str) -> str:
    """In %; one seed has no spread."""
    mean, deviation = 100 * numbers["mean"], numbers["deviation"]
    return f"{mean:{form}}" if deviation is None else f"{mean:{form}} ± {100 * deviation:.1f}"


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

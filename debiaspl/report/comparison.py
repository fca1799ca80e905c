"""Several methods on one task, over the same seeds."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MethodRow = tuple[str, str, str, str, str, str]
Results = Sequence[Mapping[str, Any]]
"""One per seed."""


@dataclass(frozen=True)
class Comparison:
    """Results of each method, one per seed, in the order of ``seeds``."""

    seeds: Sequence[int]
    results: Mapping[str, Results]
    baseline: str

    def __post_init__(self) -> None:
        for name, runs in self.results.items():
            if len(runs) != len(self.seeds):
                raise ValueError(f"{name} has {len(runs)} results, expected one for each of {len(self.seeds)} seeds.")

    def to_json(self) -> dict[str, Any]:
        """All numbers of the table, and what they were made from."""
        return {"seeds": list(self.seeds), "baseline": self.baseline, "methods": self._methods()}

    def _methods(self) -> dict[str, Any]:
        baseline = self.results[self.baseline]
        return {
            name: {**measured(runs, baseline), "pseudo_labels": [run.get("pseudo_labels") for run in runs]}
            for name, runs in self.results.items()
        }

    def header(self) -> MethodRow:
        return "method", "accuracy %", f"- {self.baseline}", "better on", "worst %", "imbalance"

    def rows(self) -> list[MethodRow]:
        """The table, cell by cell: means over seeds, with the standard deviation where a spread is meant."""
        rows = []
        for name, numbers in self._methods().items():
            difference, imbalance = numbers["difference"], numbers["pseudo_imbalance"]
            own = name == self.baseline
            rows.append(
                (
                    name,
                    with_spread(numbers["accuracy"], ".1f"),
                    "" if own else with_spread(difference, "+.1f"),
                    "" if own else f"{difference['better_on']} of {len(self.seeds)}",
                    f"{100 * numbers['worst_recall']['mean']:.0f}",
                    f"{imbalance['median']:.1f}" if imbalance else "-",
                )
            )
        return rows

    def finding(self, method: str) -> str:
        """What the seeds show of a method beside the baseline, in one sentence."""
        difference = self._methods()[method]["difference"]
        each = [100 * value for value in difference["per_seed"]]
        mean, better, count = statistics.fmean(each), difference["better_on"], len(each)
        if count == 1:
            return f"One seed: {method} {mean:+.1f} points against {self.baseline}. One seed proves little; try more."
        if better == count:
            return (
                f"{method} was better than {self.baseline} on all {count} seeds: by {mean:.1f} points on average, "
                f"{min(each):.1f} at the least."
            )
        said = f"better than {self.baseline} on {better} of {count} seeds, equal on {each.count(0)}"
        if mean > 0:
            return f"{method} was {said}: by {mean:.1f} points on average, {min(each):+.1f} at the least."
        return f"{method} was not better than {self.baseline} here: {mean:+.1f} points on average; {said}."

    def to_markdown(self) -> str:
        return markdown([self.header(), *self.rows()])


def measured(runs: Results, baseline: Results | None) -> dict[str, Any]:
    """What the runs of one method come to; their difference to the same seeds of the baseline, where that was run."""
    pairs = [] if baseline is None else zip(runs, baseline, strict=True)
    differences = [run["accuracy"] - base["accuracy"] for run, base in pairs]
    difference = summary(differences)
    return {
        "accuracy": summary([run["accuracy"] for run in runs]),
        "difference": difference and {**difference, "better_on": sum(value > 0 for value in differences)},
        "worst_recall": summary([run["worst_recall"] for run in runs]),
        "pseudo_imbalance": summary([run["pseudo_imbalance"] for run in runs if "pseudo_imbalance" in run]),
    }


def with_spread(numbers: Mapping[str, Any], form: str) -> str:
    """In %; one seed has no spread."""
    mean, deviation = 100 * numbers["mean"], numbers["deviation"]
    return f"{mean:{form}}" if deviation is None else f"{mean:{form}} ± {100 * deviation:.1f}"


def summary(values: Sequence[float]) -> dict[str, Any] | None:
    """Mean, sample standard deviation and median, with the values they come from; None of no values."""
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

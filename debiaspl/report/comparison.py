"""Several methods on one task, over the same seeds: a list of them, or algorithms by corrections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from debiaspl._shares import EVEN, TRUE, pseudo_measures
from debiaspl.report.over_seeds import (
    Results,
    difference_heading,
    difference_note,
    in_brackets,
    markdown,
    measured,
    summary,
    with_pairs,
    with_spread,
)

Table = list[tuple[str, ...]]
"""A header and rows."""
BASELINE, OWN = "none", "own"


@dataclass(frozen=True)
class Comparison:
    """Results of each method, one per seed, in the order of ``seeds``."""

    seeds: Sequence[int]
    results: Mapping[str, Results]
    baseline: str

    def __post_init__(self) -> None:
        for name, runs in self.results.items():
            _check(name, runs, self.seeds)

    def to_json(self) -> dict[str, Any]:
        """All numbers of the table, and what they were made from."""
        true = [run.get("true_counts") for run in self.results[self.baseline]]
        return {"seeds": list(self.seeds), "baseline": self.baseline, "true_counts": true, "methods": self._methods}

    @cached_property
    def _methods(self) -> dict[str, Any]:
        baseline = self.results[self.baseline]
        return {
            name: {**measured(runs, baseline), "pseudo_labels": [run.get("pseudo_labels") for run in runs]}
            for name, runs in self.results.items()
        }

    def forms(self) -> list[list[Table]]:
        """The table, then shorter forms for narrow terminals; the last one is two: methods, and their differences."""
        whole = self.whole()
        short: Table = [(row[0], *row[2:4], *row[6:8]) for row in whole]
        measures: Table = [(*row[:2], *row[3:]) for row in short]
        differences: Table = [(row[0], row[2]) for row in short if row[2]]
        return [[whole], [short], [measures, differences] if len(differences) > 1 else [measures]]

    def whole(self) -> Table:
        """Means over seeds, with the standard deviation where useful."""
        against = f"- {difference_heading(self.baseline, len(self.seeds))}", "worst seed", "better on"
        measures = [one for runs in self.results.values() for one in map(pseudo_measures, runs) if one]
        shares = EVEN if any(one["reference"] == EVEN for one in measures) else TRUE
        last = "worst class %", f"off {shares} %", "almost none"
        lines: Table = [("method", "seeds", "accuracy %", *against, *last)]
        for name, numbers in self._methods.items():
            difference, off = numbers["difference"], numbers["pseudo_distance"]
            paired = "", "", ""
            if name != self.baseline:
                text, better = _paired(difference)
                paired = text, f"{100 * min(difference['per_seed']):+.1f}", better
            lines.append(
                (
                    name,
                    str(len(self.seeds)),
                    with_spread(numbers["accuracy"]),
                    *paired,
                    f"{100 * numbers['worst_recall']['mean']:.0f}",
                    f"{100 * off['mean']:.0f}" if off else "-",
                    f"{numbers['pseudo_almost_none']['mean']:.1f}" if off else "-",
                )
            )
        return lines

    def notes(self) -> list[str]:
        """What is in the brackets."""
        return [difference_note(len(self.seeds))] if len(self.seeds) > 1 else []

    def finding(self, method: str) -> str:
        """One sentence that compares a method with the baseline over the seeds."""
        difference = self._methods[method]["difference"]
        mean, better, count = 100 * difference["mean"], difference["better_on"], len(self.seeds)
        if count == 1:
            return f"One seed: {method} {mean:+.1f} points against {self.baseline}. One seed is not enough; try more."
        interval = "" if difference["interval"] is None else "95 % interval "
        average = f"{mean:+.1f} points on average ({interval}{in_brackets(difference)})"
        if better == count:
            return f"{method} was better than {self.baseline} on all {count} seeds: {average}."
        counts = f"better than {self.baseline} on {better} of {count} seeds, equal on {difference['per_seed'].count(0)}"
        if mean > 0:
            return f"{method} was {counts}: {average}."
        return f"{method} was not better than {self.baseline} here: {average}; {counts}."

    def to_markdown(self) -> str:
        return _text(self.whole(), self.notes())


@dataclass(frozen=True)
class Matrix:
    """Results of every pair of an algorithm and a correction; pairs that cannot be trained have a reason."""

    seeds: Sequence[int]
    results: Mapping[str, Mapping[str, Results]]
    """Algorithm -> correction -> results, one per seed."""
    refused: Mapping[str, Mapping[str, str]]
    """Algorithm -> correction -> why the pair cannot be trained."""
    own: Mapping[str, str]
    """Algorithm -> the correction built into its paper, for the column ``own``."""
    corrections: Sequence[str]

    def __post_init__(self) -> None:
        for algorithm, runs in self.results.items():
            for correction in self.corrections:
                if correction not in self.refused.get(algorithm, {}):
                    _check(f"{algorithm} with {correction}", runs.get(correction, ()), self.seeds)

    def to_json(self) -> dict[str, Any]:
        """All numbers of the table, and what they were made from."""
        algorithms = {
            name: {"own_correction": self.own[name], "corrections": cells, "refused": self.refused[name]}
            for name, cells in self._cells.items()
        }
        return {"seeds": list(self.seeds), "baseline": BASELINE, "algorithms": algorithms}

    @cached_property
    def _cells(self) -> dict[str, dict[str, Any]]:
        return {
            algorithm: {
                correction: measured(ended, runs.get(BASELINE))
                | {"seconds": summary([run["timing"]["seconds"] for run in ended])}
                for correction, ended in runs.items()
            }
            for algorithm, runs in self.results.items()
        }

    def forms(self) -> list[list[Table]]:
        """The table, then in two for narrow terminals: accuracies, and differences to no correction."""
        whole = self.whole()
        if BASELINE not in self.corrections:
            return [[whole]]
        accuracies: Table = [(*row[:4], row[-1]) for row in whole]
        differences: Table = [(*row[:2], *row[4:6]) for row in whole if row[4]]
        return [[whole], [accuracies, differences] if len(differences) > 1 else [accuracies]]

    def whole(self) -> Table:
        """A row for each pair: means over seeds, with the standard deviation where a spread is meant."""
        against = f"- {difference_heading(BASELINE, len(self.seeds))}", "better on"
        lines: Table = [("algorithm", "correction", "accuracy %", "worst %", *against, "s a run")]
        for algorithm, cells in self._cells.items():
            for name in self.corrections:
                shown: tuple[str, ...] = ("-", *[""] * 4)
                if name == OWN and self.own[algorithm] in self.corrections:  # the same runs
                    shown = (f"= {self.own[algorithm]}", *[""] * 4)
                elif cell := cells.get(name):
                    paired = ("", "") if name == BASELINE else _paired(cell["difference"])
                    worst, seconds = 100 * cell["worst_recall"]["mean"], cell["seconds"]["mean"]
                    shown = with_spread(cell["accuracy"]), f"{worst:.0f}", *paired, f"{seconds:.0f}"
                lines.append((algorithm, name, *shown))
        return lines if BASELINE in self.corrections else [(*line[:4], line[-1]) for line in lines]

    def notes(self) -> list[str]:
        """Notes below the table: every reason once, and what ``own`` means."""
        count = len(self.seeds)
        notes = [f"{count} seeds. ±: standard deviation. {difference_note(count)}"] if count > 1 else []
        reasons = dict.fromkeys(reason for refused in self.refused.values() for reason in refused.values())
        notes += [f"-: {reason}" for reason in reasons]
        if OWN in self.corrections:
            users = {own: ", ".join(name for name in self.own if self.own[name] == own) for own in self.own.values()}
            told = "; ".join(f"{own} for {names}" for own, names in users.items())
            notes.append(f"{OWN}: the correction built into each paper: {told}.")
        return notes

    def to_markdown(self) -> str:
        return _text(self.whole(), self.notes())


def _check(name: str, runs: Results, seeds: Sequence[int]) -> None:
    if len(runs) != len(seeds):
        raise ValueError(f"{name} has {len(runs)} results, expected one for each of {len(seeds)} seeds.")


def _paired(difference: Mapping[str, Any] | None) -> tuple[str, str]:
    """A paired difference, and on how many seeds it is above 0."""
    if difference is None:
        return "", ""
    return with_pairs(difference), f"{difference['better_on']} of {len(difference['per_seed'])}"


def _text(table: Table, notes: Sequence[str]) -> str:
    return markdown(table) + "".join(f"\n{note}\n" for note in notes)

"""Several methods on one task, over the same seeds: a list of them, or algorithms by corrections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
BASELINE, COMPARED, OWN = "none", "debiaser", "own"
WIDEST = 3
"""With more corrections than this, each pair has a row of its own."""


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
        return {"seeds": list(self.seeds), "baseline": self.baseline, "true_counts": true, "methods": self._methods()}

    def _methods(self) -> dict[str, Any]:
        baseline = self.results[self.baseline]
        return {
            name: {**measured(runs, baseline), "pseudo_labels": [run.get("pseudo_labels") for run in runs]}
            for name, runs in self.results.items()
        }

    def tables(self) -> list[Table]:
        """The table in two forms: complete, and for a terminal of 80 columns."""
        whole = self.whole()
        return [whole, [(row[0], *row[2:4], *row[6:8]) for row in whole]]

    def narrow(self) -> list[Table]:
        """Two tables, for where both are too wide: the methods, and their differences."""
        whole = self.whole()
        first: Table = [(row[0], row[2], *row[6:8]) for row in whole]
        second: Table = [(row[0], row[3]) for row in whole if row[3]]
        return [first, second] if len(second) > 1 else [first]

    def whole(self) -> Table:
        """Means over seeds, with the standard deviation where useful."""
        against = f"- {difference_heading(self.baseline, len(self.seeds))}", "worst seed", "better on"
        measures = "worst class %", f"off {self._reference()} %", "almost none"
        lines: Table = [("method", "seeds", "accuracy %", *against, *measures)]
        for name, numbers in self._methods().items():
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

    def _reference(self) -> str:
        """The shares that pseudo-labels are compared with: even ones, if some run does not record the true ones."""
        measures = [pseudo_measures(run) for runs in self.results.values() for run in runs]
        return EVEN if any(one and one["reference"] == EVEN for one in measures) else TRUE

    def notes(self) -> list[str]:
        """What is in the brackets."""
        return [difference_note(len(self.seeds))] if len(self.seeds) > 1 else []

    def finding(self, method: str) -> str:
        """One sentence that compares a method with the baseline over the seeds."""
        difference = self._methods()[method]["difference"]
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
            name: {"own_correction": self.own[name], "corrections": self._cells(name), "refused": self.refused[name]}
            for name in self.results
        }
        return {"seeds": list(self.seeds), "baseline": BASELINE, "algorithms": algorithms}

    def _cells(self, algorithm: str) -> dict[str, Any]:
        runs = self.results[algorithm]
        return {
            correction: measured(ended, runs.get(BASELINE))
            | {"seconds": summary([run["timing"]["seconds"] for run in ended])}
            for correction, ended in runs.items()
        }

    def tables(self) -> list[Table]:
        """First the form that is read best: means over seeds, with the standard deviation where a spread is meant."""
        return [self.wide(), self.long()] if len(self.corrections) <= WIDEST else [self.long()]

    def wide(self) -> Table:
        """A row for each algorithm."""
        compares = {BASELINE, COMPARED} <= set(self.corrections)
        columns = [text for name in self.corrections for text in (f"{name} %", "worst %")]
        ending = self._ending(f"{COMPARED} - ") if compares else ()
        lines: Table = [("algorithm", *columns, *ending, "s a run")]
        for algorithm in self.results:
            cells = self._cells(algorithm)
            shown = [text for name in self.corrections for text in self._shown(algorithm, name, cells)]
            ending = _paired(cells.get(COMPARED, {}).get("difference")) if compares else ()
            lines.append((algorithm, *shown, *ending, self._seconds(cells)))
        return lines

    def long(self) -> Table:
        """A row for each pair."""
        compares = BASELINE in self.corrections
        ending = self._ending("- ") if compares else ()
        lines: Table = [("algorithm", "correction", "accuracy %", "worst %", *ending, "s a run")]
        for algorithm in self.results:
            cells = self._cells(algorithm)
            for name in self.corrections:
                alone = {} if self._same(algorithm, name) else {key: cells[key] for key in cells if key == name}
                difference = None if name == BASELINE else alone.get(name, {}).get("difference")
                ending = _paired(difference) if compares else ()
                lines.append((algorithm, name, *self._shown(algorithm, name, cells), *ending, self._seconds(alone)))
        return lines

    def narrow(self) -> list[Table]:
        """``long`` in two tables, for where it is too wide: accuracy, and differences to no correction if there are
        some."""
        whole = self.long()
        if BASELINE not in self.corrections:
            return [whole]
        first = [(*row[:4], row[-1]) for row in whole]
        second = [(*row[:2], *row[4:6]) for row in whole if row[4]]
        return [first, second] if len(second) > 1 else [first]

    def _ending(self, minus: str) -> tuple[str, str]:
        return minus + difference_heading(BASELINE, len(self.seeds)), "better on"

    def _shown(self, algorithm: str, correction: str, cells: Mapping[str, Any]) -> tuple[str, str]:
        if correction not in cells:
            return "-", "-"
        if self._same(algorithm, correction):
            return f"= {self.own[algorithm]}", ""
        cell = cells[correction]
        return with_spread(cell["accuracy"]), f"{100 * cell['worst_recall']['mean']:.0f}"

    def _same(self, algorithm: str, correction: str) -> bool:
        """The algorithm's own correction has a column of its own: the same runs."""
        return correction == OWN and self.own[algorithm] in self.corrections

    def _seconds(self, cells: Mapping[str, Any]) -> str:
        each = [value for cell in cells.values() for value in cell["seconds"]["per_seed"]]
        return f"{sum(each) / len(each):.0f}" if each else ""

    def notes(self) -> list[str]:
        """Notes below the table: every reason once, and what ``own`` means."""
        count = len(self.seeds)
        notes = [f"{count} seeds. ±: standard deviation. {difference_note(count)}"] if count > 1 else []
        reasons = dict.fromkeys(reason for refused in self.refused.values() for reason in refused.values())
        notes += [f"-: {reason}" for reason in reasons]
        if OWN in self.corrections:
            built_in: dict[str, list[str]] = {}
            for algorithm, correction in self.own.items():
                built_in.setdefault(correction, []).append(algorithm)
            told = "; ".join(f"{name} for {', '.join(users)}" for name, users in built_in.items())
            notes.append(f"{OWN}: the correction built into each paper: {told}.")
        return notes

    def to_markdown(self) -> str:
        return _text(self.tables()[0], self.notes())


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

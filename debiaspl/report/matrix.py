"""Algorithms by corrections on one task, over the same seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debiaspl.report.comparison import Results, markdown, measured, summary, with_spread

BASELINE, COMPARED, OWN = "none", "debiaser", "own"
WIDEST = 3
"""More corrections than this are not set beside each other: then each pair has a row of its own."""


@dataclass(frozen=True)
class Matrix:
    """What was measured of every pair of an algorithm and a correction; a pair that makes no sense has a reason."""

    seeds: Sequence[int]
    results: Mapping[str, Mapping[str, Results]]
    """Algorithm -> correction -> results, one per seed."""
    refused: Mapping[str, Mapping[str, str]]
    """Algorithm -> correction -> why the pair makes no sense."""
    own: Mapping[str, str]
    """Algorithm -> the correction that its paper has built in, which the column ``own`` stands for."""
    corrections: Sequence[str]

    def __post_init__(self) -> None:
        for algorithm, runs in self.results.items():
            for correction in self.corrections:
                count = len(runs.get(correction, ()))
                if correction not in self.refused.get(algorithm, {}) and count != len(self.seeds):
                    raise ValueError(
                        f"{algorithm} with {correction} has {count} results, expected {len(self.seeds)}, one per seed."
                    )

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

    def tables(self) -> list[list[tuple[str, ...]]]:
        """Header and rows, first in the form that is read best: means over seeds, with the standard deviation where a
        spread is meant. The last form fits anywhere."""
        return [self.wide(), self.long()] if len(self.corrections) <= WIDEST else [self.long()]

    def wide(self) -> list[tuple[str, ...]]:
        """A row for each algorithm."""
        compares = {BASELINE, COMPARED} <= set(self.corrections)
        columns = [text for name in self.corrections for text in (f"{name} %", "worst %")]
        ending = (f"{COMPARED} - {BASELINE}", "better on") if compares else ()
        lines = [("algorithm", *columns, *ending, "s a run")]
        for algorithm in self.results:
            cells = self._cells(algorithm)
            shown = [text for name in self.corrections for text in self._shown(algorithm, name, cells)]
            ending = self._shown_difference(cells.get(COMPARED)) if compares else ()
            lines.append((algorithm, *shown, *ending, self._seconds(cells)))
        return lines

    def long(self) -> list[tuple[str, ...]]:
        """A row for each pair."""
        compares = BASELINE in self.corrections
        ending = (f"- {BASELINE}", "better on") if compares else ()
        lines = [("algorithm", "correction", "accuracy %", "worst %", *ending, "s a run")]
        for algorithm in self.results:
            cells = self._cells(algorithm)
            for name in self.corrections:
                alone = {} if self._same(algorithm, name) else {key: cells[key] for key in cells if key == name}
                ending = self._shown_difference(None if name == BASELINE else alone.get(name)) if compares else ()
                lines.append((algorithm, name, *self._shown(algorithm, name, cells), *ending, self._seconds(alone)))
        return lines

    def _shown(self, algorithm: str, correction: str, cells: Mapping[str, Any]) -> tuple[str, str]:
        if correction not in cells:
            return "-", "-"
        if self._same(algorithm, correction):
            return f"= {self.own[algorithm]}", ""
        cell = cells[correction]
        return with_spread(cell["accuracy"], ".1f"), f"{100 * cell['worst_recall']['mean']:.0f}"

    def _same(self, algorithm: str, correction: str) -> bool:
        """The algorithm's own correction has a column of its own: the same runs."""
        return correction == OWN and self.own[algorithm] in self.corrections

    def _shown_difference(self, cell: Mapping[str, Any] | None) -> tuple[str, str]:
        if cell is None or cell["difference"] is None:
            return "", ""
        difference = cell["difference"]
        return with_spread(difference, "+.1f"), f"{difference['better_on']} of {len(self.seeds)}"

    def _seconds(self, cells: Mapping[str, Any]) -> str:
        each = [value for cell in cells.values() for value in cell["seconds"]["per_seed"]]
        return f"{sum(each) / len(each):.0f}" if each else ""

    def notes(self) -> list[str]:
        """What stands below the table: every reason once, and what ``own`` stands for."""
        reasons = list(dict.fromkeys(reason for refused in self.refused.values() for reason in refused.values()))
        notes = [f"-: {reason}" for reason in reasons]
        if OWN in self.corrections:
            built_in: dict[str, list[str]] = {}
            for algorithm, correction in self.own.items():
                built_in.setdefault(correction, []).append(algorithm)
            told = "; ".join(f"{name} for {', '.join(users)}" for name, users in built_in.items())
            notes.append(f"{OWN}: what each paper has built in: {told}.")
        return notes

    def to_markdown(self) -> str:
        return markdown(self.tables()[0]) + "".join(f"\n{note}\n" for note in self.notes())

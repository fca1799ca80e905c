"""Several methods on one task, over the same seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from debiaspl._measures import EVEN, TRUE, pseudo_measures
from debiaspl._over_seeds import MIN_PAIRS, in_brackets, markdown, paired_test, summary


@dataclass(frozen=True)
class Comparison:
    """Results of each method, one per seed, in the order of ``seeds``."""

    seeds: Sequence[int]
    results: Mapping[str, Sequence[Mapping[str, Any]]]
    baseline: str

    def to_json(self) -> dict[str, Any]:
        """All numbers of the table, and what they were made from."""
        true = [run.get("true_counts") for run in self.results[self.baseline]]
        return {"seeds": list(self.seeds), "baseline": self.baseline, "true_counts": true, "methods": self._methods}

    @cached_property
    def _methods(self) -> dict[str, Any]:
        baseline, methods = self.results[self.baseline], {}
        for name, runs in self.results.items():
            differences = [run["accuracy"] - base["accuracy"] for run, base in zip(runs, baseline, strict=True)]
            pseudo = [one for one in map(pseudo_measures, runs) if one]
            methods[name] = {
                "accuracy": summary([run["accuracy"] for run in runs]),
                "difference": (summary(differences) or {}) | paired_test(differences),
                "worst_recall": summary([run["worst_recall"] for run in runs]),
                "pseudo_distance": summary([one["distance"] for one in pseudo]),
                "pseudo_almost_none": summary([one["almost_none"] for one in pseudo]),
                "pseudo_labels": [run.get("pseudo_labels") for run in runs],
            }
        return methods

    def short(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The header and the rows of the columns that fit a terminal."""
        header, *rows = ((row[0], *row[2:4], *row[6:8]) for row in self.whole())
        return header, rows

    def whole(self) -> list[tuple[str, ...]]:
        """A header and rows: means over seeds, with the standard deviation where useful."""
        shown = "95 % t, p" if len(self.seeds) >= MIN_PAIRS else "each seed"
        against = f"- {self.baseline} ({shown})", "worst seed", "better on"
        measures = [one for runs in self.results.values() for one in map(pseudo_measures, runs) if one]
        shares = EVEN if any(one["reference"] == EVEN for one in measures) else TRUE
        last = "worst class %", f"off {shares} %", "almost none"
        lines: list[tuple[str, ...]] = [("method", "seeds", "accuracy %", *against, *last)]
        for name, numbers in self._methods.items():
            difference, off = numbers["difference"], numbers["pseudo_distance"]
            paired = "", "", ""
            if name != self.baseline:
                worst, better = 100 * min(difference["per_seed"]), difference["better_on"]
                mean = f"{100 * difference['mean']:+.1f}"
                mean += f" ({in_brackets(difference)})" if len(self.seeds) > 1 else ""
                paired = mean, f"{worst:+.1f}", f"{better} of {len(self.seeds)}"
            spread, least = numbers["accuracy"]["deviation"], f"{100 * numbers['worst_recall']['mean']:.0f}"
            accuracy = f"{100 * numbers['accuracy']['mean']:.1f}"
            accuracy += "" if spread is None else f" ± {100 * spread:.1f}"
            few = numbers["pseudo_almost_none"]
            pseudo = (f"{100 * off['mean']:.0f}", f"{few['mean']:.1f}") if off else ("-", "-")
            lines.append((name, str(len(self.seeds)), accuracy, *paired, least, *pseudo))
        return lines

    def notes(self) -> list[str]:
        """What is in the brackets."""
        if len(self.seeds) == 1:
            return []
        if len(self.seeds) < MIN_PAIRS:
            return ["In brackets: the paired difference of each seed; a test needs six or more seeds."]
        interval = "the 95 % interval of the paired difference over seeds, by Student's t"
        return [f"In brackets: {interval}, and the p value of the exact sign-flip permutation test."]

    def finding(self, method: str) -> str:
        """One sentence that compares a method with the baseline over the seeds."""
        difference, count = self._methods[method]["difference"], len(self.seeds)
        interval = "" if difference["interval"] is None else "95 % interval "
        each = f" ({interval}{in_brackets(difference)})" if count > 1 else "; one seed is not enough, try more"
        better = f"better than {self.baseline} on {difference['better_on']} of {count} seed{'s' * (count > 1)}"
        return f"{method} was {better}: {100 * difference['mean']:+.1f} points on average{each}."

    def to_markdown(self) -> str:
        return markdown(self.whole()) + "".join(f"\n{note}\n" for note in self.notes())

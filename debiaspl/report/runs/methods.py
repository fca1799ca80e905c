"""Runs that differ in their seed alone are one method; what methods are called, and how they compare."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debiaspl.algorithms import ALGORITHMS, STARTS
from debiaspl.report.chance import paired, wilson
from debiaspl.report.runs.record import RunRecord

# Where the class is not called as people call the method.
TITLES = {
    "supervised": "supervised",
    "pseudolabel": "Pseudo-Label",
    "mean-teacher": "Mean Teacher",
    "crest": "CReST",
    "crest+": "CReST+",
}
# What does not change what is computed, or changes it only as another seed would.
APART = ("name", "about", "cost", "paper", "seed", "log_every", "evaluate_every", "checkpoint_every")


@dataclass(frozen=True, eq=False)
class Method:
    """Runs of one recipe, by seed."""

    title: str
    runs: list[RunRecord]

    @property
    def supervised(self) -> bool:
        return str(self.runs[0].recipe["algorithm"]["name"]) == "supervised"

    def ended(self) -> list[Mapping[str, Any]]:
        """Results of the runs that have ended."""
        return [run.results for run in self.runs if run.results is not None]

    def accuracy(self) -> dict[str, Any] | None:
        """Mean over seeds; its spread for several, and Wilson's interval for one."""
        results = self.ended()
        if not results:
            return None
        values = [float(one["accuracy"]) for one in results]
        spread = statistics.stdev(values) if len(values) > 1 else None
        interval = accuracy_interval(results[0]) if len(values) == 1 else None
        return {"mean": statistics.fmean(values), "deviation": spread, "interval": interval, "seeds": len(values)}

    def difference(self, other: "Method") -> dict[str, Any] | None:
        """Accuracy less the other's, seed by seed; None without a seed in common."""
        mine, theirs = self._by_seed(), other._by_seed()
        both = [mine[seed] - theirs[seed] for seed in mine if seed in theirs]
        if not both:
            return None
        spread = statistics.stdev(both) if len(both) > 1 else None
        return {
            "mean": statistics.fmean(both),
            "deviation": spread,
            "better": sum(one > 0 for one in both),
            "seeds": len(both),
            "chance": paired(both, 1 / self.ended()[0]["test"]) if len(both) > 1 else None,
        }

    def middle(self, name: str) -> float | None:
        """Median over seeds of a number of the results; None if no run has it."""
        values = self._values(name)
        return statistics.median(values) if values else None

    def mean(self, name: str) -> float | None:
        """The same for the mean."""
        values = self._values(name)
        return statistics.fmean(values) if values else None

    def _values(self, name: str) -> list[float]:
        return [float(one[name]) for one in self.ended() if one.get(name) is not None]

    def _by_seed(self) -> dict[int, float]:
        return {run.recipe["seed"]: float(run.results["accuracy"]) for run in self.runs if run.results is not None}


def accuracy_interval(results: Mapping[str, Any]) -> tuple[float, float]:
    """Wilson's 95 % interval of one run's accuracy."""
    images = int(results["test"])
    return wilson(round(results["accuracy"] * images), images)


def methods_of(runs: Sequence[RunRecord]) -> list[Method]:
    """Runs put together by recipe: supervised baselines first, then what has no correction, then the rest."""
    groups: dict[str, list[RunRecord]] = {}
    for run in runs:
        # Runs from before there were starts began without one.
        computed = {"start": ""} | {name: value for name, value in run.recipe.items() if name not in APART}
        groups.setdefault(json.dumps(computed, sort_keys=True), []).append(run)
    members = [sorted(group, key=lambda run: int(run.recipe["seed"])) for group in groups.values()]
    members.sort(key=lambda group: _rank(group[0].recipe))
    names = [method_name(group[0].recipe) for group in members]
    titles = [
        names[place] if names.count(names[place]) == 1 else _told_apart(names[place], group, members)
        for place, group in enumerate(members)
    ]
    return [Method(title, group) for title, group in zip(titles, members, strict=True)]


def method_name(recipe: Mapping[str, Any]) -> str:
    """FixMatch without a correction is FixMatch, with the paper's it is DebiasPL."""
    algorithm, correction = str(recipe["algorithm"]["name"]), str(recipe["correction"]["name"])
    known = {**ALGORITHMS, **STARTS}
    own = known[algorithm].__name__ if algorithm in known else algorithm
    title = TITLES.get(algorithm, own)
    if algorithm == "supervised" or plain(recipe):
        return title
    if correction == "debiaser":
        return "DebiasPL" if algorithm == "fixmatch" else f"{title} + debiasing"
    return f"{title} + {correction}"


def plain(recipe: Mapping[str, Any]) -> bool:
    """Whether the correction changes nothing."""
    correction = recipe["correction"]
    return bool(correction["name"] == "none" or correction["settings"].get("strength") == 0)


def flat(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names that ``--set`` knows; those of a part after the part."""
    settings: dict[str, Any] = {}
    for name, value in recipe.items():
        if isinstance(value, Mapping):
            settings[name] = value["name"]
            settings |= {f"{name}.{key}": setting for key, setting in value["settings"].items()}
        else:
            settings[name] = value
    return settings


def _rank(recipe: Mapping[str, Any]) -> int:
    return 0 if recipe["algorithm"]["name"] == "supervised" else 1 if plain(recipe) else 2


def _told_apart(name: str, group: list[RunRecord], members: list[list[RunRecord]]) -> str:
    """The name with the settings in which methods of this name differ."""
    rivals = [flat(other[0].recipe) for other in members if method_name(other[0].recipe) == name]
    own = flat(group[0].recipe)
    everything = dict.fromkeys(key for rival in rivals for key in rival if key not in APART)
    differing = [key for key in everything if len({json.dumps(rival.get(key)) for rival in rivals}) > 1]
    told = [f"{key.rpartition('.')[2]} {own.get(key, 'default')}" for key in differing]
    return f"{name}, {', '.join(told)}"


def what_was_tested(results: Mapping[str, Any]) -> str:
    """The images that a run was measured on: those of a test set, or labels that somebody gave for their own photos."""
    named = {
        "cross-check": "cross-checked labels",
        "held-out": "held-out labels",
        "none": "labels it was trained with",
    }
    check = results.get("check")
    return named.get(str(check.get("kind")), "test images") if isinstance(check, dict) else "test images"

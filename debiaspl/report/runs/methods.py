"""Runs that differ only in their seed are one method: its numbers over seeds, what methods differ in besides the
method, and the command that repeats a run."""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from textwrap import shorten
from typing import Any

from debiaspl._measures import EVEN, Cells, pseudo_measures, wilson
from debiaspl._over_seeds import paired_test, summary
from debiaspl.algorithms import STARTS
from debiaspl.data.open import is_known
from debiaspl.recipes import RECIPES
from debiaspl.report.runs.record import RunRecord
from debiaspl.training import Choice, Recipe
from debiaspl.training.method import method_of
from debiaspl.training.recipe import DESCRIPTION, with_defaults
from debiaspl.training.settings import as_text, parse_settings

MOST_SETTINGS = 2
"""A method is named by its settings if up to this many tell it apart."""
APART = (*DESCRIPTION, "seed", "log_every", "evaluate_every", "health_every", "checkpoint_every")
"""Settings that change no result, and the seed."""
COMPARED = ("algorithm", "correction", "teacher")
"""What is compared, and who labels, which is a matter of the method."""
UNLABELED = ("unlabeled_batch", "strong", "unlabeled images", "first_classifier")
"""Of no use to a method that learns from labels alone."""
LONGEST = 200


@dataclass(frozen=True, eq=False)
class Method:
    """Runs of one recipe, by seed."""

    title: str
    runs: list[RunRecord]

    @property
    def supervised(self) -> bool:
        return self.runs[0].recipe.algorithm.name == "supervised"

    @property
    def is_start(self) -> bool:
        """Whether only features were learned, which a nearest-class-mean classifier measures."""
        return self.runs[0].recipe.algorithm.name in STARTS

    def ended(self) -> list[Mapping[str, Any]]:
        """Results of the runs that have ended and were measured; those without labels were not."""
        return [run.results for run in self.runs if run.results is not None and "accuracy" in run.results]

    @property
    def cells(self) -> Cells:
        """The confusion matrix over its seeds."""
        return Cells.sum([Cells.from_json(one["confusion"], len(one["recall"])) for one in self.ended()])

    def accuracy(self) -> dict[str, Any] | None:
        """Mean over seeds; its spread for several, and Wilson's interval for one."""
        results = self.ended()
        numbers = summary([float(one["accuracy"]) for one in results])
        interval = accuracy_interval(results[0]) if len(results) == 1 else None
        return numbers and numbers | {"interval": interval, "seeds": len(results)}

    def difference(self, other: "Method") -> dict[str, Any] | None:
        """Accuracy minus the other's, seed by seed, and its test; None without a common seed."""
        mine, theirs = self._by_seed(), other._by_seed()
        both = [mine[seed] - theirs[seed] for seed in mine if seed in theirs]
        numbers = summary(both)
        return numbers and numbers | paired_test(both, finest=1 / self.ended()[0]["test"])

    def mean(self, name: str) -> float | None:
        """Mean over seeds of a number of the results; None if no run has it."""
        values = [float(one[name]) for one in self.ended() if one.get(name) is not None]
        return fmean(values) if values else None

    def pseudo(self) -> dict[str, Any] | None:
        """Mean measures of the pseudo-labels' shares; None without pseudo-labels. They are compared with even shares
        where some run does not record the true ones."""
        measures = [one for one in map(pseudo_measures, self.ended()) if one]
        if not measures:
            return None
        even = any(one["reference"] == EVEN for one in measures)
        means = {name: fmean(one[name] for one in measures) for name in ("distance", "almost_none")}
        return means | {"reference": EVEN if even else measures[0]["reference"]}

    def _by_seed(self) -> dict[int, float]:
        runs = [(run.recipe.seed, run.results or {}) for run in self.runs]
        return {seed: float(results["accuracy"]) for seed, results in runs if "accuracy" in results}


def accuracy_interval(results: Mapping[str, Any]) -> tuple[float, float] | None:
    """Wilson's 95 % interval of one run's accuracy; None where none was measured."""
    if "accuracy" not in results:
        return None
    images = int(results["test"])
    return wilson(round(results["accuracy"] * images), images)


def methods_of(runs: Sequence[RunRecord]) -> list[Method]:
    """Runs grouped by recipe: supervised baselines first, then those without a correction, then the rest."""
    groups: dict[str, list[RunRecord]] = {}
    for run in runs:
        computed = {name: value for name, value in run.recipe.to_json().items() if name not in APART}
        groups.setdefault(json.dumps(computed, sort_keys=True), []).append(run)
    members = [sorted(group, key=lambda run: run.recipe.seed) for group in groups.values()]
    members.sort(key=lambda group: _rank(group[0].recipe))
    names = [method_of(group[0].recipe) for group in members]
    titles = [
        names[place] if names.count(names[place]) == 1 else _told_apart(names[place], group, members)
        for place, group in enumerate(members)
    ]
    return [Method(title, group) for title, group in zip(titles, members, strict=True)]


def flat(recipe: Recipe, defaults: bool = False) -> dict[str, Any]:
    """Settings by the names that ``--set`` knows; those of a part after the part, with its ``defaults`` too or not."""
    settings: dict[str, Any] = {}
    for name, value in vars(recipe).items():
        if isinstance(value, Choice):
            settings[name] = value.name
            own = with_defaults(name, value) if defaults else value.settings
            settings |= {f"{name}.{key}": setting for key, setting in own.items()}
        else:
            settings[name] = value
    return settings


def setting_text(value: Any) -> str:
    """A setting as ``--set`` reads it."""
    return "default" if value is None else json.dumps(value) if isinstance(value, dict) else as_text(value)


def _rank(recipe: Recipe) -> int:
    """Labels alone, then without a correction, then the rest."""
    correction = recipe.correction
    if recipe.algorithm.name == "supervised":
        return 0
    return 1 if correction.name == "none" or correction.settings.get("strength") == 0 else 2


def _told_apart(name: str, group: list[RunRecord], members: list[list[RunRecord]]) -> str:
    """The name with the settings in which methods of this name differ; of many settings, with the run's folder."""
    rivals = [flat(other[0].recipe) for other in members if method_of(other[0].recipe) == name]
    own = flat(group[0].recipe)
    everything = dict.fromkeys(key for rival in rivals for key in rival if key not in APART)
    differing = [key for key in everything if len({json.dumps(rival.get(key)) for rival in rivals}) > 1]
    if len(differing) > MOST_SETTINGS:
        return f"{name}, {group[0].name}"
    return ", ".join([name, *(f"{key.rpartition('.')[2]} {own.get(key, 'default')}" for key in differing)])


def what_was_tested(results: Mapping[str, Any]) -> str:
    """The images that a run was measured on: a test set, or labels that a user gave for photos."""
    named = {
        "cross-check": "cross-checked labels",
        "held-out": "held-out labels",
        "none": "labels it was trained with",
        "teacher": "labels of its teacher, which may be wrong",
    }
    check = results.get("check")
    return named.get(str(check.get("kind")), "test images") if isinstance(check, dict) else "test images"


def differences(methods: Sequence[Method]) -> list[str]:
    """What makes a comparison unfair: everything in which the methods differ, such as steps, labels or seeds, except
    algorithm and correction with their settings."""
    conditions = [(method.title, _conditions(method)) for method in methods]
    differing = []
    for name in dict.fromkeys(name for _, values in conditions for name in values):
        by_value: dict[str, list[str]] = {}
        for title, values in conditions:
            if name in values:
                by_value.setdefault(values[name], []).append(title)
        if len(by_value) > 1:
            each = (f"{shorten(value, LONGEST)} ({'; '.join(titles)})" for value, titles in by_value.items())
            differing.append(f"{name}: {' against '.join(each)}")
    return differing + [
        f"a seed occurs twice ({one.title})" for one in methods if len(one._by_seed()) < len(one.ended())
    ]


def place_of(data: str) -> str:
    """A known set by its name; a folder the same way, however its path is written."""
    return data if is_known(data) else os.path.abspath(os.path.expanduser(data))


def _conditions(method: Method) -> dict[str, str]:
    """Settings besides the method that affect the result, the data, the seeds and what was measured on."""
    recipe, results = method.runs[0].recipe, method.ended()
    settings = {
        name: setting_text(value)
        for name, value in flat(recipe, defaults=True).items()
        if name.partition(".")[0] not in (*APART, *COMPARED)
    }
    measured = {
        "unlabeled images": {f"{one['unlabeled']:,}" for one in results if "unlabeled" in one},
        "measured on": {f"{one['test']:,} {what_was_tested(one)}" for one in results},
        "evaluated": {str(one["evaluated"]) for one in results if "evaluated" in one},
        "labels of each class": {", ".join(map(str, one["labels"])) for one in results if "labels" in one},
        # They decide which images are labeled.
        "seeds": {", ".join(str(run.recipe.seed) for run in method.runs if run.results is not None)},
    }
    told = {name: " or ".join(sorted(values)) for name, values in measured.items()}
    conditions = settings | {"data": place_of(recipe.data)} | {name: text for name, text in told.items() if text}
    unused = UNLABELED if method.supervised else ()
    return {name: text for name, text in conditions.items() if name.partition(".")[0] not in unused}


def command_of(wanted: Recipe) -> str | None:
    """``debiaspl train --recipe NAME --set ...``; None if no such command gives exactly this recipe. A run of the demo
    is called after its recipe, with the method and seed behind it."""
    try:
        origin = RECIPES.origin(wanted)
        if origin is None:
            return None
        base, options = origin
        settings = [f"{key}={as_text(value)}" for key, value in base.diff(wanted).items()]
        # Settings are written as text and some cannot be taken back: only a command that was tried is told.
        if parse_settings(base, settings).diff(wanted):
            return None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
    return shlex.join(["debiaspl", "train", *options, *(part for one in settings for part in ("--set", one))])

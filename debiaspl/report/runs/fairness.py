"""Differences between runs besides the method, such as steps, labels or seeds, which make a comparison unfair."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debiaspl.report.runs.methods import APART, Method, flat, what_was_tested
from debiaspl.training.parts import PARTS, find, is_importable, settings_of

COMPARED = ("algorithm", "correction", "teacher")
"""What is compared, and who labels, which is a matter of the method."""
UNLABELED = ("unlabeled_batch", "strong", "unlabeled images", "first_classifier")
"""Of no use to a method that learns from labels alone."""
WORDS = {
    "labeled_batch": "labeled images a step",
    "unlabeled_batch": "unlabeled images a step",
    "protocol": "which images are labeled",
    "validation": "share of the labels held out",
    "strong": "strong views",
    "accumulate": "pieces a batch is computed in",
}
MANY = 3
"""So many methods with one value are called "all others"."""


@dataclass(frozen=True)
class Difference:
    """A setting that is not the same for all methods."""

    what: str
    """The name of the setting; empty where the value is clear without it."""
    values: Sequence[tuple[str, Sequence[str]]]
    """Each value, and the methods that have it."""

    def told(self) -> list[tuple[str, str]]:
        """Each value with the methods that have it; many methods are called "all others"."""
        most = max((titles for _, titles in self.values), key=len)
        merge = len(self.values) > 1 and len(most) >= MANY
        return [(value, "all others" if merge and who is most else "; ".join(who)) for value, who in self.values]

    def __str__(self) -> str:
        told = " against ".join(f"{value} ({who})" for value, who in self.told())
        return f"{self.what}: {told}" if self.what else told


def differences(methods: Sequence[Method]) -> list[Difference]:
    """Everything in which the methods differ, except algorithm and correction with their settings."""
    conditions = [(method, _conditions(method)) for method in methods]
    differing: list[Difference] = []
    parts = set()
    for name in dict.fromkeys(name for _, values in conditions for name in values):
        part = name.partition(".")[0]
        by_value: dict[str, tuple[str, list[str]]] = {}
        for method, values in conditions:
            if name in values and not (method.supervised and part in UNLABELED):
                value, shown = values[name]
                if value not in by_value and shown in (other for other, _ in by_value.values()):
                    shown += ", spread differently over the classes"  # labels are shown as their sum
                by_value.setdefault(value, (shown, []))[1].append(method.title)
        # Parts of different names have different settings: the names say it all.
        if len(by_value) > 1 and part not in parts:
            parts |= {name} & set(PARTS)
            differing.append(Difference(_word(name), list(by_value.values())))
    return [*differing, *_seeds(methods)]


def place_of(data: str) -> str:
    """The same for the same folder, however its path is written."""
    return os.path.abspath(os.path.expanduser(data))


def _conditions(method: Method) -> dict[str, tuple[str, str]]:
    """Settings besides the method that affect the result, and what was measured on: to compare, and to show."""
    recipe = method.runs[0].recipe
    compared = (*COMPARED, "average_decay") if _averages(str(recipe["algorithm"]["name"])) else COMPARED
    plain = {name: _with_defaults(name, value) for name, value in recipe.items() if name not in (*APART, *compared)}
    shown = {name: _shown(value) for name, value in flat(plain).items()}
    data = str(recipe["data"])
    return (
        {name: (value, value) for name, value in shown.items()} | {"data": (place_of(data), data)} | _measured(method)
    )


def _averages(algorithm: str) -> bool:
    """Whether the decay of the average is a setting of the algorithm itself. A user's file is not executed for it."""
    try:
        return is_importable("algorithm", algorithm) and getattr(find("algorithm", algorithm), "needs_average", False)
    except ValueError:  # an algorithm of another version
        return False


def _with_defaults(name: str, value: Any) -> Any:
    """The value; of a part, with the defaults of its settings."""
    if not isinstance(value, Mapping):
        return value
    try:
        defaults = settings_of(name, str(value["name"]))
    except ValueError:  # a part of another version
        defaults = {}
    return {"name": value["name"], "settings": defaults | dict(value["settings"])}


def _measured(method: Method) -> dict[str, tuple[str, str]]:
    """The data of the runs, and the images that they were measured on."""
    results = method.ended()
    values: dict[str, list[Any]] = {
        "unlabeled images": [one["unlabeled"] for one in results if "unlabeled" in one],
        "measured on": [f"{one['test']:,} {what_was_tested(one)}" for one in results],
        "evaluated": [str(one["evaluated"]) for one in results if "evaluated" in one],
    }
    shown = {name: " or ".join(map(_shown, sorted(set(several)))) for name, several in values.items() if several}
    measured = {name: (value, value) for name, value in shown.items()}
    labels = sorted({tuple(one["labels"]) for one in results if "labels" in one})
    if labels:  # how many there are of each class matters as much as how many there are
        measured["labels"] = json.dumps(labels), " or ".join(map(_shown, sorted({sum(counts) for counts in labels})))
    return measured


def _seeds(methods: Sequence[Method]) -> list[Difference]:
    """Seeds, which decide the labeled images, of the runs that have ended."""
    by_seeds: dict[str, list[str]] = {}
    repeated: dict[str, list[str]] = {}
    for method in methods:
        seeds = Counter(sorted(run.recipe["seed"] for run in method.runs if run.results is not None))
        if seeds:
            by_seeds.setdefault(", ".join(map(str, seeds)), []).append(method.title)
        for seed, count in seeds.items():
            if count > 1:
                repeated.setdefault(f"seed {seed} occurs {count} times", []).append(method.title)
    differing = [Difference("seeds", list(by_seeds.items()))] if len(by_seeds) > 1 else []
    return differing + [Difference("", [one]) for one in repeated.items()]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)


def _word(name: str) -> str:
    part, _, setting = name.partition(".")
    return (f"{WORDS.get(part, part)}, {setting}" if setting else WORDS.get(name, name)).replace("_", " ")

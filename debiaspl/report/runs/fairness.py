"""Differences between runs besides the method, such as steps, labels or seeds, which make a comparison unfair."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

from debiaspl.report.runs.methods import APART, Method, flat, what_was_tested
from debiaspl.training import Recipe
from debiaspl.training.parts import PARTS, find, is_at_hand, settings_of

# What is compared, and who labels, which is a matter of the method.
COMPARED = ("algorithm", "correction", "teacher")
# Of no use to a method that learns from labels alone.
UNLABELED = ("unlabeled_batch", "strong", "unlabeled images", "first_classifier")
WORDS = {
    "labeled_batch": "labeled images a step",
    "unlabeled_batch": "unlabeled images a step",
    "protocol": "which images are labeled",
    "validation": "share of the labels held out",
    "strong": "strong views",
    "accumulate": "pieces a batch is computed in",
}
MANY = 3


@dataclass(frozen=True)
class Condition:
    """A value to compare, and its text."""

    key: str
    shown: str


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
    names = list(dict.fromkeys(name for _, found in conditions for name in found))
    differing: list[Difference] = []
    parts = set()
    for name in names:
        part = name.partition(".")[0]
        values: dict[str, tuple[str, list[str]]] = {}
        for method, found in conditions:
            if name in found and not (method.supervised and part in UNLABELED):
                values.setdefault(found[name].key, (found[name].shown, []))[1].append(method.title)
        # Parts of different names have different settings: the names say it all.
        if len(values) > 1 and part not in parts:
            parts |= {name} & set(PARTS)
            differing.append(Difference(_word(name), _told_apart(list(values.values()))))
    return [*differing, *_seeds(methods)]


def place_of(data: str) -> str:
    """The same for the same folder, however its path is written."""
    return os.path.abspath(os.path.expanduser(data))


def _told_apart(values: Sequence[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Labels are shown as a sum, although only their classes may differ."""
    seen: set[str] = set()
    told = []
    for shown, titles in values:
        told.append((f"{shown}, spread differently over the classes" if shown in seen else shown, titles))
        seen.add(shown)
    return told


def _conditions(method: Method) -> dict[str, Condition]:
    """Settings besides the method that affect the result."""
    defaults = {item.name: item.default for item in fields(Recipe) if item.default is not MISSING}
    recipe = defaults | dict(method.runs[0].recipe)
    averages = _averages("algorithm", method.runs[0].recipe.get("algorithm"))
    compared = (*COMPARED, "average_decay") if averages else COMPARED
    plain = {name: value for name, value in recipe.items() if name not in (*APART, *compared)}
    settings = {name: _shown(value) for name, value in flat(_with_defaults(plain)).items()}
    found = {name: Condition(shown, shown) for name, shown in settings.items()}
    data = str(plain["data"])
    return found | {"data": Condition(place_of(data), data)} | _measured(method.ended())


def _averages(kind: str, part: Mapping[str, Any] | None) -> bool:
    """Whether the decay of the average is a setting of the algorithm itself. A user's file is not executed for it."""
    if part is None:  # of an earlier version
        return False
    name = str(part["name"])
    try:
        return is_at_hand(kind, name) and getattr(find(kind, name), "needs_average", False)
    except ValueError:  # an algorithm of another version
        return False


def _with_defaults(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with defaults filled in."""
    filled = {}
    for name, value in recipe.items():
        if isinstance(value, Mapping):
            try:
                known = settings_of(name, str(value["name"]))
            except ValueError:  # a part of another version
                known = {}
            value = {"name": value["name"], "settings": known | dict(value["settings"])}
        elif name in PARTS:  # the recipe of an earlier version, which had no choice of it
            value = {"name": value.name, "settings": settings_of(name, value.name) | dict(value.settings)}
        filled[name] = value
    return filled


def _measured(results: Sequence[Mapping[str, Any]]) -> dict[str, Condition]:
    """The data of the runs, and the images that they were measured on."""
    if not results:
        return {}
    found = {
        "labels": [sum(one["labels"]) for one in results if "labels" in one],
        "unlabeled images": [one["unlabeled"] for one in results if "unlabeled" in one],
        "measured on": [f"{one['test']:,} {what_was_tested(one)}" for one in results],
        "evaluated": [str(one["evaluated"]) for one in results if "evaluated" in one],
    }
    told = {name: " or ".join(map(_shown, sorted(set(values)))) for name, values in found.items() if values}
    measured = {name: Condition(shown, shown) for name, shown in told.items()}
    labels = [tuple(one["labels"]) for one in results if "labels" in one]
    if labels:  # how many there are of each class matters as much as how many there are
        measured["labels"] = Condition(json.dumps(sorted(set(labels))), told["labels"])
    return measured


def _seeds(methods: Sequence[Method]) -> list[Difference]:
    """Seeds, which decide the labeled images, of the runs that have ended."""
    told: dict[str, list[str]] = {}
    repeated: dict[str, list[str]] = {}
    for method in methods:
        seeds = Counter(sorted(run.recipe["seed"] for run in method.runs if run.results is not None))
        if seeds:
            told.setdefault(", ".join(map(str, seeds)), []).append(method.title)
        for seed, count in seeds.items():
            if count > 1:
                often = "twice" if count == 2 else f"{count} times"
                repeated.setdefault(f"seed {seed} occurs {often}", []).append(method.title)
    differing = [Difference("seeds", list(told.items()))] if len(told) > 1 else []
    return differing + [Difference("", [one]) for one in repeated.items()]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)


def _word(name: str) -> str:
    part, _, setting = name.partition(".")
    return (f"{WORDS.get(part, part)}, {setting}" if setting else WORDS.get(name, name)).replace("_", " ")

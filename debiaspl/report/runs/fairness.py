"""Differences between runs besides the method, such as steps, labels or seeds, which make a comparison unfair."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from debiaspl.data.open import is_known
from debiaspl.report.runs.methods import APART, Method, flat, what_was_tested
from debiaspl.training.parts import PARTS

COMPARED = ("algorithm", "correction", "teacher")
"""What is compared, and who labels, which is a matter of the method."""
UNLABELED = ("unlabeled_batch", "strong", "unlabeled images", "first_classifier")
"""Of no use to a method that learns from labels alone."""
LONGEST = 200
MANY = 3
"""So many methods with one value are called "all others"."""


@dataclass(frozen=True)
class Difference:
    """A setting that is not the same for all methods."""

    what: str
    """The name of the setting, as ``--set`` knows it; empty where the value is clear without it."""
    values: Sequence[tuple[str, Sequence[str]]]
    """Each value, and the methods that have it."""

    def told(self) -> list[tuple[str, str]]:
        """Each value with the methods that have it; many methods are called "all others"."""
        most = max((titles for _, titles in self.values), key=len)
        merge = len(self.values) > 1 and len(most) >= MANY
        who = ("all others" if merge and titles is most else "; ".join(titles) for _, titles in self.values)
        return [(shorten(value, LONGEST), names) for (value, _), names in zip(self.values, who, strict=True)]

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
        by_value: dict[str, list[str]] = {}
        for method, values in conditions:
            if name in values and not (method.supervised and part in UNLABELED):
                by_value.setdefault(values[name], []).append(method.title)
        # Parts of different names have different settings: the names say it all.
        if len(by_value) > 1 and part not in parts:
            parts |= {name} & set(PARTS)
            differing.append(Difference(name, list(by_value.items())))
    return [*differing, *_seeds(methods)]


def place_of(data: str) -> str:
    """A known set by its name; a folder the same way, however its path is written."""
    return data if is_known(data) else os.path.abspath(os.path.expanduser(data))


def _conditions(method: Method) -> dict[str, str]:
    """Settings besides the method that affect the result, and what was measured on."""
    recipe = method.runs[0].recipe
    shown = {
        name: _shown(value)
        for name, value in flat(recipe, defaults=True).items()
        if name.partition(".")[0] not in (*APART, *COMPARED)
    }
    return shown | {"data": place_of(recipe.data)} | _measured(method)


def _measured(method: Method) -> dict[str, str]:
    """The data of the runs, and the images that they were measured on."""
    results = method.ended()
    values: dict[str, Iterable[Any]] = {
        "unlabeled images": (one["unlabeled"] for one in results if "unlabeled" in one),
        "measured on": (f"{one['test']:,} {what_was_tested(one)}" for one in results),
        "evaluated": (str(one["evaluated"]) for one in results if "evaluated" in one),
        "labels of each class": (one["labels"] for one in results if "labels" in one),
    }
    shown = {name: " or ".join(sorted(set(map(_shown, several)))) for name, several in values.items()}
    return {name: text for name, text in shown.items() if text}


def _seeds(methods: Sequence[Method]) -> list[Difference]:
    """Seeds, which decide the labeled images, of the runs that have ended."""
    by_seeds: dict[str, list[str]] = {}
    repeated: dict[str, list[str]] = {}
    for method in methods:
        seeds = Counter(sorted(run.recipe.seed for run in method.runs if run.results is not None))
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

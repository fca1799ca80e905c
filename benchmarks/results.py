"""What lies in results/: one row for every file of benchmarks/gain.py and benchmarks/plan_results.py, with the name of
what ran, how it differs from that recipe today, and the command that makes it again; and paired differences.

Files keep the command and the commit that they were made with. Recipes had one name each up to commit 583f46c, such as
``cifar10-40-start-fixmatch``: ``chosen`` says which cell, length and method that is now.
"""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any

from debiaspl.recipes import RECIPES, cifar10, long_tail
from debiaspl.training import Choice, Recipe
from debiaspl.training.parts import PARTS, settings_of
from debiaspl.training.settings import parse_settings

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
FOLDERS = "start/*/*.json", "gain/*/*.json", "long-tail/*.json", "paper/*.json"
SEARCH = "search"
"""In the names of files that say how settings were chosen; they are no results of a recipe."""
FINEST = 0.01
"""Points: one of 10,000 test images."""
NOT_COMPUTED = (
    *("name", "about", "cost", "paper", "seed"),
    *("log_every", "evaluate_every", "health_every", "checkpoint_every"),
)
"""Fields that do not change what a recipe computes, or only as another seed would."""
OTHER_RECIPE = 5
"""With more differences than that, a row is called an earlier recipe."""
LENGTHS = ("fast", "minutes", "start")
ENDINGS = ("fixmatch", "supervised", "margins", "multiview", "scripts", "pretrain")


def chosen(name: str) -> tuple[str, str, str]:
    """Cell, length and method of a recipe's name up to 583f46c. Short recipes are contrastmatch, whatever they were
    called."""
    ending = next((one for one in ENDINGS if name.endswith(f"-{one}")), "")
    cell = name.removesuffix(f"-{ending}") if ending else name
    length = next((one for one in LENGTHS if cell.endswith(f"-{one}")), "paper")
    cell = cell.removesuffix(f"-{length}")
    short = length in ("minutes", "start")
    methods = {"": "contrastmatch+debiaser" if short else "debiaspl", "pretrain": "moco"}
    if short:
        methods["fixmatch"] = "contrastmatch"
    return cell, length, methods.get(ending, ending)


def title(recipe: Recipe) -> str:
    """What ran: FixMatch and DebiasPL where it is that, otherwise algorithm and corrections. A Debiaser whose labels
    are not debiased is called margins: that is not the paper's method."""
    algorithm, correction = recipe.algorithm.name, recipe.correction
    settings = {**settings_of("correction", correction.name), **correction.settings}
    debiased = settings.get("strength") != 0
    widened = debiased or settings.get("margin_strength") or settings.get("labeled_strength")
    names = [
        ("debiaser" if debiased else "margins") if part == "debiaser" else part
        for part in correction.name.split("+")
        if part != "none" and (part != "debiaser" or widened)
    ]
    if algorithm == "fixmatch" and names in ([], ["debiaser"]):
        return "DebiasPL" if names else "FixMatch"
    return "+".join([algorithm, *names])


@dataclass(frozen=True)
class Row:
    """One method in one cell, by one recipe."""

    file: str
    """In results/."""
    cell: str
    length: str
    """``paper``, ``fast``, ``minutes`` or ``start``."""
    method: str
    changed: tuple[str, ...]
    """How it differs from today's recipe."""
    accuracy: tuple[float, ...]
    """Of each fold, in %."""
    folds: tuple[int, ...]
    """Their seeds."""
    minutes: float
    """Mean of a fold's whole process, with that of its start."""
    together: int
    """Runs that shared the GPU; each took longer than alone."""
    commands: tuple[str, ...]
    """What makes the first fold again; the start's first."""

    @property
    def recipe(self) -> str:
        """The length, and what differs from it."""
        return ", ".join([self.length, *self.changed])


@dataclass(frozen=True)
class Pair:
    """A method with the Debiaser and without it, on the same folds."""

    row: Row
    folds: tuple[int, ...]
    plain: float
    debiased: float
    differences: tuple[float, ...]
    """In points, of each fold."""


def rows(root: Path = RESULTS) -> list[Row]:
    """Of every result file, by cell and length."""
    paths = [path for pattern in FOLDERS for path in sorted(root.glob(pattern)) if SEARCH not in path.stem]
    found = [read_row(path, root) for path in paths]
    order = list(dict.fromkeys(["cifar10-40", "cifar10-250", *(row.cell for row in found)]))
    return sorted(found, key=lambda row: (order.index(row.cell), row.length == "minutes", row.method, len(row.changed)))


def read_row(path: Path, root: Path = RESULTS) -> Row:
    values = json.loads(path.read_text())
    recorded = recorded_recipe(values["recipe"])
    cell, length, method = chosen(recorded.name)
    now = same_correction(named(recorded.name), recorded)
    changed = differences(now, recorded)
    shown = changed if len(changed) <= OTHER_RECIPE else [f"earlier recipe of {recorded.steps:,} steps"]
    start = start_recipe(values)
    begun = differences(named(start.name), start) if start else []
    folds = values["folds"]
    seeds = tuple(int(fold.get("fold", place)) for place, fold in enumerate(folds))
    first = f"seed={seeds[0]}"
    commands = (
        [command(start.name, [*begun, *([first] if "seed=" in values["start_command"] else [])])] if start else []
    )
    settings = [*correction_settings(recorded, named(recorded.name)), *changed, first]
    return Row(
        path.relative_to(root).as_posix(),
        cell,
        length,
        "supervised" if method == "supervised" else title(recorded),
        (*shown, *(f"start: {one}" for one in begun)),
        tuple(round(100 * fold["accuracy"], 2) for fold in folds),
        seeds,
        fmean(fold["seconds"] for fold in folds) / 60,
        values["together"],
        (*commands, command(recorded.name, settings)),
    )


def named(name: str) -> Recipe:
    """Today's recipe of a name up to 583f46c."""
    return RECIPES[name]


def command(name: str, settings: Sequence[str]) -> str:
    return shlex.join(["debiaspl", "train", "--recipe", name, *(part for one in settings for part in ("--set", one))])


def recorded_recipe(values: Mapping[str, Any]) -> Recipe:
    """The recipe of a result file, without fields and settings that there were once, and that had no effect."""
    known = {item.name for item in fields(Recipe)}
    kept = {key: value for key, value in values.items() if key in known}
    for part in PARTS:
        if part in kept:
            name, settings = kept[part]["name"], kept[part]["settings"]
            now = settings_of(part, name)
            kept[part] = {"name": name, "settings": {key: value for key, value in settings.items() if key in now}}
    return Recipe.from_json(kept)


def start_recipe(values: Mapping[str, Any]) -> Recipe | None:
    """The recipe of the start that a file's runs began with, from ``debiaspl train --recipe NAME --set KEY=VALUE``."""
    if "start_command" not in values:
        return None
    typed = shlex.split(values["start_command"])
    if typed[:3] != ["debiaspl", "train", "--recipe"] or set(typed[4::2]) - {"--set"}:
        raise ValueError(f"start_command is {values['start_command']!r}")
    return parse_settings(named(typed[3]), typed[5::2])


def same_correction(now: Recipe, recorded: Recipe) -> Recipe:
    """Today's recipe with the algorithm and correction that were recorded, which the method's name says."""
    for part in ("algorithm", "correction"):
        if getattr(now, part).name != getattr(recorded, part).name:
            now = parse_settings(now, [f"{part}={getattr(recorded, part).name}"])
    return now


def correction_settings(recorded: Recipe, now: Recipe) -> list[str]:
    parts = ("algorithm", "correction")
    return [
        f"{one}={getattr(recorded, one).name}" for one in parts if getattr(now, one).name != getattr(recorded, one).name
    ]


def differences(now: Recipe, recorded: Recipe) -> list[str]:
    """``key=value`` of everything that changes what is computed; equal recipes differ in nothing."""
    before, after = flat(now), flat(recorded)
    return [f"{key}={_text(value)}" for key, value in after.items() if key not in before or before[key] != value]


def flat(recipe: Recipe) -> dict[str, Any]:
    """Every field and every setting of every part, defaults filled in, by the name that ``--set`` knows."""
    values: dict[str, Any] = {}
    for item in fields(recipe):
        value = getattr(recipe, item.name)
        if isinstance(value, Choice):
            values[item.name] = value.name
            values |= {**settings_of(item.name, value.name), **value.settings}
        elif item.name not in NOT_COMPUTED:
            values[item.name] = value
    return values


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)


def about(cell: str) -> str:
    """A cell in words."""
    known = {one.name: one.about for one in long_tail.CELLS}
    return known.get(cell) or RECIPES[cell].about.rpartition(": ")[0]


def papers() -> dict[str, dict[str, float]]:
    """The paper's CIFAR-10 numbers, by cell and method."""
    return {name: {"FixMatch": fixmatch, "DebiasPL": ours} for name, _, _, fixmatch, ours in cifar10.CELLS}


def pairs(found: Sequence[Row]) -> list[Pair]:
    """The Debiaser and no correction wherever both were measured, on the folds that both have. What is set of the
    correction alone, such as its strength, the plain method does not have."""
    plain = {(row.cell, row.recipe, row.method): row for row in found}
    made = []
    for row in found:
        without = {"DebiasPL": "FixMatch"}.get(row.method) or row.method.removesuffix("+debiaser")
        kept = [one for one in row.changed if one.partition("=")[0] not in settings_of("correction", "debiaser")]
        other = plain.get((row.cell, ", ".join([row.length, *kept]), without))
        if without != row.method and other is not None:
            ours, theirs = (dict(zip(one.folds, one.accuracy, strict=True)) for one in (row, other))
            folds = tuple(fold for fold in ours if fold in theirs)
            if folds:
                each = tuple(round(ours[fold] - theirs[fold], 2) for fold in folds)
                means = (fmean(one[fold] for fold in folds) for one in (theirs, ours))
                made.append(Pair(row, folds, *means, each))
    return made


def points(value: float) -> str:
    """With one decimal, halves rounded away from zero, so that rounding errors do not change the text."""
    return f"{round(value + math.copysign(1e-6, value), 1):+.1f}"

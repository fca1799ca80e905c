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

from debiaspl.recipes import recipe
from debiaspl.recipes.cells import CELLS
from debiaspl.training import Recipe
from debiaspl.training.method import method_of
from debiaspl.training.parts import PARTS, settings_of
from debiaspl.training.settings import as_text, parse_settings

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
FOLDERS = "start/*/*.json", "gain/*/*.json", "long-tail/*.json", "paper/*.json"
SEARCH = "search"
"""In the names of files that say how settings were chosen; they are no results of a recipe."""
FINEST = 0.01
"""Points: one of 10,000 test images."""
NOT_COMPUTED = "seed", "log_every", "evaluate_every", "health_every", "checkpoint_every"
"""Fields that do not change what a recipe computes, or only as another seed would."""
OTHER_RECIPE = 5
"""With more differences than that, a row is called an earlier recipe."""
LENGTHS = ("fast", "minutes", "start")
SETS = {"digits": "digits-10", "cifar10": "cifar10-40", "eurosat": "eurosat-40"}
"""A cell of each set with a start of its own."""
TITLES = {"debiaspl": "DebiasPL", "fixmatch": "FixMatch"}
"""How papers call a method; others keep their names."""


def chosen(name: str) -> tuple[str, str | None, str | None]:
    """Cell, length and method of a recipe's name up to 583f46c; None is the default. Short recipes are contrastmatch,
    whatever they were called."""
    if name.endswith("-pretrain"):
        cell = name.removesuffix("-pretrain")
        return SETS.get(cell, cell), None, "moco"
    cell = max((one for one in CELLS if name == one or name.startswith(f"{one}-")), key=len)
    length, _, method = name.removeprefix(cell).removeprefix("-").partition("-")
    if length not in LENGTHS:
        return cell, None, length or None
    return cell, length, {"fixmatch": "contrastmatch", "margins": "contrastmatch+margins"}.get(method, method) or None


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
    cell, length, _ = chosen(recorded.name)
    method = method_of(recorded)
    changed = differences(recipe(cell, length, method), recorded)
    start = start_recipe(values)
    begun = differences(named(_start_name(values)), start) if start else []
    folds = values["folds"]
    seeds = tuple(int(fold.get("fold", place)) for place, fold in enumerate(folds))
    first, own_start = f"seed={seeds[0]}", "seed=" in values.get("start_command", "")
    of_start = command(cell, None, "moco", [*begun, *([first] if own_start else [])])
    earlier = [f"earlier recipe of {recorded.steps:,} steps"]
    return Row(
        path.relative_to(root).as_posix(),
        cell,
        length or "paper",
        TITLES.get(method, method),
        (*(changed if len(changed) <= OTHER_RECIPE else earlier), *(f"start: {one}" for one in begun)),
        tuple(round(100 * fold["accuracy"], 2) for fold in folds),
        seeds,
        fmean(fold["seconds"] for fold in folds) / 60,
        values["together"],
        (*([of_start] if start else []), command(cell, length, method, [*changed, first])),
    )


def named(name: str) -> Recipe:
    """Today's recipe of a name up to 583f46c."""
    return recipe(*chosen(name))


def command(cell: str, length: str | None, method: str | None, settings: Sequence[str]) -> str:
    options = ["--recipe", cell]
    options += ["--length", length] if length else []
    options += ["--method", method] if method and method != method_of(recipe(cell, length)) else []
    return shlex.join(["debiaspl", "train", *options, *(part for one in settings for part in ("--set", one))])


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
    return parse_settings(named(_start_name(values)), shlex.split(values["start_command"])[5::2])


def _start_name(values: Mapping[str, Any]) -> str:
    typed = shlex.split(values["start_command"])
    if typed[:3] != ["debiaspl", "train", "--recipe"] or set(typed[4::2]) - {"--set"}:
        raise ValueError(f"start_command is {values['start_command']!r}")
    return typed[3]


def differences(now: Recipe, recorded: Recipe) -> list[str]:
    """``key=value`` of everything that changes what is computed; equal recipes differ in nothing."""
    found = []
    for key, value in now.diff(recorded).items():
        part, _, setting = key.rpartition(".")
        if key not in NOT_COMPUTED:
            found.append(f"{setting if recorded.owner(setting) == part else key}={as_text(value)}")
    return found


def about(cell: str) -> str:
    """A cell in words."""
    return CELLS[cell].about


def papers() -> dict[str, dict[str, float]]:
    """The paper's CIFAR-10 numbers, by cell and title of the method."""
    return {
        cell.name: {TITLES[method]: number for method, number in cell.papers.items()}
        for cell in CELLS.values()
        if cell.papers and cell.data == "cifar10"
    }


def pairs(found: Sequence[Row]) -> list[Pair]:
    """The Debiaser and no correction wherever both were measured, on the folds that both have. What is set of the
    correction alone, such as its strength, the plain method does not have."""
    plain = {(row.cell, row.recipe, row.method): row for row in found}
    made = []
    for row in found:
        without = {"DebiasPL": "FixMatch"}.get(row.method, row.method.removesuffix("+debiaser"))
        kept = [one for one in row.changed if one.partition("=")[0] not in settings_of("correction", "debiaser")]
        other = plain.get((row.cell, ", ".join([row.length, *kept]), without))
        if without != row.method and other is not None:
            ours, theirs = (dict(zip(one.folds, one.accuracy, strict=True)) for one in (row, other))
            folds = tuple(fold for fold in ours if fold in theirs)
            if folds:
                each = tuple(round(ours[fold] - theirs[fold], 2) for fold in folds)
                plain_mean, mean = (fmean(one[fold] for fold in folds) for one in (theirs, ours))
                made.append(Pair(row, folds, plain_mean, mean, each))
    return made


def points(value: float) -> str:
    """With one decimal, halves rounded away from zero, so that rounding errors do not change the text."""
    return f"{round(value + math.copysign(1e-6, value), 1):+.1f}"

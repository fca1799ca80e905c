"""Our measured accuracy beside the paper's: a row for every cell, method and recipe, measured or open."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from debiaspl.recipes import RECIPES, recipe, result_files
from debiaspl.recipes.cifar10 import CELLS
from debiaspl.recipes.method_names import ALIGNED_MARGINS, DEBIASPL, FIXMATCH, correction_name
from debiaspl.recipes.result_files import SEARCH, json_files, read_result, shown_path
from debiaspl.report.runs.methods import APART
from debiaspl.training import Recipe, RunError
from debiaspl.training.parts import PARTS, is_at_hand, settings_of

METHODS = {DEBIASPL: "", FIXMATCH: "-fixmatch", ALIGNED_MARGINS: "-margins", "supervised": "-supervised"}
"""Methods, and the endings of their recipes' names."""
PLAIN = Recipe(name="", data="")
KINDS = {"start": "-start", "minutes": "-minutes", "paper": ""}
"""Kinds of recipes, and what follows the cell in their names."""


@dataclass(frozen=True)
class MeasuredRow:
    """One recipe's folds; none, where it has not been measured."""

    cell: str
    method: str
    """With the settings that differ from the recipe of that name: ``DebiasPL, strength=1``. What corrects it is part of
    its name: ``FixMatch + logit-adjustment``. ``earlier recipe``: more than the number of steps has been changed
    since."""
    recipe: str
    """``start``, ``minutes`` or ``paper``."""
    paper: float | None
    """The paper's number for the method in this cell, top-1 %, over 2^19 steps."""
    accuracy: tuple[float, ...] = ()
    """Of each fold, in %."""
    seconds: tuple[float, ...] = ()
    """Of each fold, from the start of its process to its end."""
    together: int = 1
    """How many runs shared the GPU; each took longer than alone."""
    gpu: str | None = None
    folds: tuple[int, ...] = ()
    """The seed of each."""
    file: str | None = None
    """Where they were read."""
    ran: str = ""
    """What was run, in words."""

    @property
    def standing(self) -> str:
        """``open``: not measured. ``below`` or ``reached``, for the paper's own recipe. ``other recipe``, which cannot
        be compared with the paper's number. Empty where the paper has no number."""
        if not self.accuracy:
            return "open"
        if self.paper is None:
            return ""
        if self.recipe != "paper" or self.method not in METHODS:
            return "other recipe"
        return "below" if mean(self.accuracy) < self.paper else "reached"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "standing": self.standing}


def rows(*folders: Path) -> list[MeasuredRow]:
    """A row for every result file in these folders (a folder for each cell, a file for each recipe), and for every
    expected result that is missing."""
    found: list[MeasuredRow] = []
    cells = _cells()
    for folder in folders:
        for path in json_files(folder):
            search = path.parent == folder and SEARCH in path.stem
            if not search and (path.parent.name not in cells or path.parent.parent != folder):
                place = folder / next(iter(cells))
                raise RunError(f"{path} is not in the folder of a cell. Expected a folder such as {place}.")
    for cell, papers in cells.items():
        files = {path.stem: path for folder in folders for path in json_files(folder) if path.parent == folder / cell}
        for kind, infix in KINDS.items():
            for method, ending in METHODS.items():
                paper = papers.get(method)
                # Each file once: what ends in no method's name is a variant of DebiasPL.
                own = sorted((stem for stem in files if _belongs(stem, cell + infix, ending)), key=_order)
                measured = [_row(files.pop(stem), cell, method, kind, paper) for stem in own]
                # Of a recipe that has been changed, what it gives now is not known.
                known = any(row.method == method for row in measured)
                there = cell + infix + ending in RECIPES
                if not known and there and (paper is not None or (kind != "paper" and method != "supervised")):
                    measured.insert(0, MeasuredRow(cell, method, kind, paper))
                found += measured
        for path in files.values():
            raise RunError(f"{path} has no name of a recipe of {cell}. Expected a name such as {cell}-minutes.")
    return found


def _order(stem: str) -> tuple[bool, int]:
    """Sort key: the recipe itself, its variants, then earlier recipes."""
    return stem.endswith("-earlier"), len(stem)


def _belongs(stem: str, prefix: str, ending: str) -> bool:
    rest = stem.removeprefix(prefix)
    if not stem.startswith(prefix) or rest.startswith(tuple(infix for infix in KINDS.values() if infix)):
        return False
    if ending:
        return rest.startswith(ending)
    return not rest.startswith(tuple(other for other in METHODS.values() if other))


def _row(path: Path, cell: str, method: str, kind: str, paper: float | None) -> MeasuredRow:
    try:
        measured = read_result(path)
        checked(measured)
        settings = [setting for setting in measured["command"].split() if "=" in setting]
        recorded = Recipe.from_json(measured["recipe"])
        told = [*changes(recorded, settings), *_changes_of_start(measured.get("start_command", ""))]
        ran = _as_run(recorded, method)
        if ran != method:
            told = [text for text in told if not text.startswith("correction=")]
            method, paper = ran, None
        return MeasuredRow(
            cell,
            ", ".join([method, *told]),
            kind,
            paper,
            accuracy=tuple(round(100 * fold["accuracy"], 2) for fold in measured["folds"]),
            seconds=tuple(fold["seconds"] for fold in measured["folds"]),
            together=measured["together"],
            gpu=measured["device"],
            folds=fold_numbers(measured["folds"]),
            file=shown_path(path),
            ran=described(recorded),
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise RunError(
            f"{path} cannot be read as results of benchmarks/gain.py: {reason}. Measure it again, or remove it."
        ) from error


def _as_run(recorded: Recipe, method: str) -> str:
    """The method of a file, by what corrects it and not by the file's name alone."""
    correction = correction_name(recorded.correction)
    if method == "supervised":
        return method
    if not correction:
        return FIXMATCH
    return correction if correction.startswith(DEBIASPL) else f"{FIXMATCH} + {correction}"


def _changes_of_start(command: str) -> list[str]:
    """How a start differs from the recipe that has its name now: ``start: steps=20000``."""
    typed = command.split()
    if not typed:
        return []
    now = recipe(typed[typed.index("--recipe") + 1])
    return [f"start: {setting}" for setting in _changing(now, [part for part in typed if "=" in part])]


def fold_numbers(folds: list[dict[str, Any]]) -> tuple[int, ...]:
    """The seeds of the folds; where a file does not record them, their positions."""
    return tuple(int(fold.get("fold", place)) for place, fold in enumerate(folds))


def described(found: Recipe) -> str:
    """What a recipe runs: ``WRN-28-2, fixmatch with debiaser (strength=0.5), 524,288 steps of 64 + 448 images``."""
    network, correction = found.network, found.correction
    name = {"resnet9": "ResNet-9"}.get(network.name, network.name)
    if network.name == "wrn":
        name = f"WRN-{network.settings.get('depth', 28)}-{network.settings.get('width', 2)}"
    settings = ", ".join(f"{key}={value:g}" for key, value in correction.settings.items())
    text = f"{name}, {found.algorithm.name}"
    if correction.name != "none":
        text += f" with {correction.name}" + (f" ({settings})" if settings else "")
    text += f", {found.steps:,} steps of {found.labeled_batch} + {found.unlabeled_batch} images"
    return f"{text}, from the start {found.start}" if found.start else text


def checked(measured: Any) -> None:
    """Raise where the content is not a result."""
    if not isinstance(measured, dict) or not isinstance(measured["recipe"], dict):
        raise ValueError("expected an object with a recipe")
    if measured["recipe"]["name"] not in RECIPES:
        raise ValueError(f"there is no recipe {measured['recipe']['name']!r} any more")
    texts = measured["command"], measured["device"], measured.get("start_command", "")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("its command, start_command or device is not text")
    if not isinstance(measured["together"], int) or measured["together"] < 1:
        raise ValueError(f"together is {measured['together']!r}, expected a number of runs")
    if not isinstance(measured["folds"], list) or not measured["folds"]:
        raise ValueError("it has no folds")
    for fold in measured["folds"]:
        for name, most in (("accuracy", 1.0), ("seconds", math.inf)):
            value = fold[name]
            if not isinstance(value, int | float) or not 0 <= value <= most:
                raise ValueError(f"the {name} of a fold is {value!r}, expected a number")


def changes(measured: Recipe, settings: list[str]) -> Iterator[str]:
    """How a measured recipe differs from the recipe that has its name now."""
    now = recipe(measured.name)
    yield from _changing(now, settings)
    now = now.with_settings(settings)
    if computed(measured) == computed(now):
        return
    longer = replace(now, steps=measured.steps)
    same = computed(measured) == computed(longer)
    yield f"steps={measured.steps}" if same else f"earlier recipe of {measured.steps:,} steps"


def _changing(now: Recipe, settings: list[str]) -> Iterator[str]:
    """The settings that change what a recipe computes."""
    for setting in settings:
        before, now = now, now.with_settings([setting])
        if computed(before) != computed(now):
            yield setting


def computed(found: Recipe) -> Recipe:
    """The recipe without fields that do not change what it computes, and with the settings that it leaves at their
    defaults: two recipes that compute the same are equal then."""
    parts = {kind: getattr(found, kind) for kind in PARTS}
    filled = {
        kind: replace(part, settings={**settings_of(kind, part.name), **part.settings})
        for kind, part in parts.items()
        if is_at_hand(kind, part.name)
    }
    return replace(found, **filled, **{name: getattr(PLAIN, name) for name in APART})


def _cells() -> dict[str, dict[str, float]]:
    """Every cell with the paper's numbers, those of docs/lab/debiasing.md first."""
    papers = {name: {"FixMatch": fixmatch, "DebiasPL": debiaspl} for name, _, _, fixmatch, debiaspl in CELLS}
    first = ("cifar10-lt100-10pct", "cifar10-40", "cifar10-250", "cifar10-lt200-10pct-balanced")
    return {name: papers[name] for name in first} | {"eurosat-40": {}} | papers


def home() -> tuple[Path, ...]:
    """Where the paper's cells were measured: of the checkout, or else of the copy in the package."""
    return result_files.home() / "gain", result_files.home() / "start"


def accuracy_by_recipe() -> dict[str, float]:
    """The mean accuracy of every recipe that was measured as it is, in %; none if the folder holds other results."""
    try:
        measured = [row for row in rows(*home()) if row.accuracy and row.method in METHODS]
    except RunError:
        return {}
    return {row.cell + KINDS[row.recipe] + METHODS[row.method]: mean(row.accuracy) for row in measured}


def table(found: list[MeasuredRow]) -> Iterator[tuple[str, ...]]:
    """Rows of docs/lab/debiasing.md: cell, method, recipe, accuracy, seconds, the paper's number and the standing."""
    for row in found:
        paper = "-" if row.paper is None else f"{row.paper:.1f}"
        if not row.accuracy:
            yield row.cell, row.method, row.recipe, "", "", paper, "open"
            continue
        seconds = f"{mean(row.seconds):.0f}" + (f", {row.together} at once" if row.together > 1 else "")
        folds = f"{_with_range(row)}, {len(row.accuracy)} fold{'s' if len(row.accuracy) > 1 else ''}"
        yield row.cell, row.method, row.recipe, folds, seconds, paper, row.standing


HEADER = ("method", "recipe", "ours %", "folds", "seconds", "paper")


def narrow_table(found: list[MeasuredRow]) -> Iterator[tuple[str, ...]]:
    """Rows for a terminal, under ``HEADER``; their cell is the heading."""
    for row in found:
        paper = "-" if row.paper is None else f"{row.paper:.1f}"
        if not row.accuracy:
            yield row.method, row.recipe, "open", "", "", paper
            continue
        seconds = f"{mean(row.seconds):.0f}" + (f" ({row.together})" if row.together > 1 else "")
        yield row.method, row.recipe, _with_range(row), str(len(row.accuracy)), seconds, paper


def _with_range(row: MeasuredRow) -> str:
    """The mean, and the worst and the best fold."""
    spread = f" ({min(row.accuracy):.1f} to {max(row.accuracy):.1f})" if len(row.accuracy) > 1 else ""
    return f"{mean(row.accuracy):.1f}{spread}"

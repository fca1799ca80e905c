"""Several methods on the same task and seeds, as a table: a list of them, or algorithms by corrections.

debiaspl compare --methods fixmatch,debiaspl,mine.py:Mine+debiaser
debiaspl compare --methods fixmatch,uda,mine.py:Mine --corrections none,own,debiaser --seeds 5
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from debiaspl.encoders import load_encoder
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.features.run import is_frozen, refuse_for_frozen, train_encoded
from debiaspl.files import write_json, write_text
from debiaspl.recipes import recipe as recipe_named
from debiaspl.recipes.cells import CELLS
from debiaspl.recipes.folder import experiment_folder, timed
from debiaspl.report.comparison import OWN, Comparison, Matrix
from debiaspl.training import Choice, Job, Recipe, Run, RunError, train_all
from debiaspl.training.build import NeedsPictures
from debiaspl.training.method import with_method
from debiaspl.training.parts import PARTS, find
from debiaspl.training.settings import as_text, parse_settings, split_assignments
from debiaspl.training.step import Step
from debiaspl.training.tasks import task_of

SETTINGS: dict[str, dict[str, Any]] = {
    "mean-teacher": {"unlabeled_weight": 0.3, "ramp_up": 1.0, "average_decay": 0.95},
    "mixmatch": {"unlabeled_weight": 20.0, "ramp_up": 1.0},
    "remixmatch": {"views": 1, "ramp_up": 1.0, "rotation_weight": 0.1},
    "freematch": {"decay": 0.99},
    "crest": {"generations": 2},
    "crest+": {"generations": 2},
    "paws": {
        **{"learning_rate": 0.06, "warm_up": 0.1, "average_decay": 0.95, "labeled_batch": 64, "draws": 1},
        **{"small_views": 0, "support_views": 1, "balanced_support": False},
    },
}
"""Settings of an algorithm for the few steps of the digits recipes, the same for every correction. Chosen on some of
the seeds 100 to 103 without a correction (docs/lab/notebook.md); others have the paper's settings."""

CPU = torch.device("cpu")
SHORT = tuple(cell.name for cell in CELLS.values() if cell.data == "digits")
DECIDED = {"algorithm": "--methods", "correction": "--methods", "seed": "--seeds"}
NAMED = "as named"
"""The only column of a list of methods."""


@dataclass(frozen=True)
class Plan:
    """The runs of a comparison. Planning trains and writes nothing, and finds mistakes early."""

    base: Recipe
    cells: Mapping[str, Mapping[str, Recipe]]
    """Method -> ``NAMED``, or algorithm -> correction, as they were named -> the recipe."""
    refused: Mapping[str, Mapping[str, str]]
    """The same -> why it cannot be trained."""
    seeds: Sequence[int]
    corrections: Sequence[str]
    settings: Sequence[str]
    device: str = "cpu"
    """Of all runs."""

    def notes(self) -> list[str]:
        """Settings that not every method has, and methods that cannot be trained."""
        named = list(self.corrections) == [NAMED]
        notes = [f"{method}: {row[NAMED]}" for method, row in self.refused.items() if named and row]
        for setting in self.settings:
            without = [
                algorithm
                for algorithm, row in self.cells.items()
                if row and not any(recipe.owner(_key(setting)) for recipe in row.values())
            ]
            if without:
                notes.append(f"{setting} was not used by {', '.join(without)}: no such setting.")
        return notes

    def changes(self) -> dict[str, dict[str, Any]]:
        """Algorithm -> correction -> settings of the pair that differ from the base recipe."""
        base = self.base.to_json()
        return {
            algorithm: {
                correction: {key: value for key, value in recipe.to_json().items() if value != base[key]}
                for correction, recipe in row.items()
            }
            for algorithm, row in self.cells.items()
        }

    def jobs(self, out: Path) -> dict[tuple[str, str, int], Job]:
        """The runs by algorithm, correction and seed. Pairs that are equal share one run."""
        jobs = {}
        for algorithm, row in self.cells.items():
            for correction, recipe in row.items():
                # With settings of its own, a built-in correction differs from the column of the same name.
                settled = correction == OWN and find("algorithm", algorithm).own_settings
                pair = f"{algorithm}-{OWN if settled else recipe.correction.name}"
                name = re.sub(r"[^\w+.-]+", "-", algorithm if correction == NAMED else pair)
                for seed in self.seeds:
                    run = replace(recipe, name=f"{self.base.name}-{name}-seed{seed}", seed=seed)
                    jobs[algorithm, correction, seed] = Job(run, out / f"{name}-seed{seed}", self.device)
        return jobs


def plan(
    base: Recipe,
    methods: Sequence[str],
    corrections: Sequence[str] | None,
    seeds: Sequence[int],
    settings: Iterable[str],
) -> Plan:
    """Plan a comparison of methods, or, with corrections, of algorithms by corrections. User files that are named are
    executed."""
    settings, corrections = list(settings), (NAMED,) if corrections is None else corrections
    for kind, names in (("method", methods), ("correction", corrections)):
        if len(set(names)) < len(names) or not names:
            raise ValueError(f"--{kind}s is {','.join(names)!r}, expected one name or more, each only once.")
    cells = {
        method: {correction: _cell(base, method, correction, settings) for correction in corrections}
        for method in methods
    }
    _check_settings(cells, settings)
    refused = _refused(cells)
    sensible = {
        algorithm: {correction: recipe for correction, recipe in row.items() if correction not in refused[algorithm]}
        for algorithm, row in cells.items()
    }
    if not any(sensible.values()):
        reasons = dict.fromkeys(reason for row in refused.values() for reason in row.values())
        raise ValueError(f"nothing can be trained. {' '.join(reasons)}")
    return Plan(base, sensible, refused, seeds, corrections, settings)


def base_recipe(name: str | None, length: str | None = None, settings: Sequence[str] = ()) -> Recipe:
    """The recipe that all runs share, on the data that ``settings`` name."""
    base, data = recipe_named(name or SHORT[0], length), split_assignments(settings).get("data")
    if data and name is None and data != base.data:
        raise ValueError(
            f"data={data} needs a --recipe, for the network, protocol and schedule of all runs: debiaspl list recipes. "
            f"For a folder of photos: debiaspl compare {data}."
        )
    return base if data is None else replace(base, data=data)


def _cell(base: Recipe, method: str, correction: str, settings: Sequence[str]) -> Recipe:
    """The base with this method, and those of ``settings`` that it has."""
    recipe = with_method(base, method if correction in (NAMED, OWN) else f"{method}+{correction}", load_files=True)
    if base.name in SHORT:
        recipe = recipe.changed(**SETTINGS.get(recipe.algorithm.name, {}))
    # Parts first, and one by one: a part that is named has settings which the one before it did not have.
    for item in sorted(settings, key=lambda item: _key(item) not in PARTS):
        if recipe.owner(_key(item)) or "=" not in item:
            recipe = parse_settings(recipe, [item])
    return recipe


def _key(setting: str) -> str:
    return setting.partition("=")[0].strip()


def _check_settings(cells: Mapping[str, Mapping[str, Recipe]], settings: Sequence[str]) -> None:
    """Raise where a setting belongs to no pair, or to different parts of different pairs."""
    recipes = [recipe for row in cells.values() for recipe in row.values()]
    for key in map(_key, settings):
        if key in DECIDED:
            raise ValueError(f"compare varies {key} itself. Choose it with {DECIDED[key]}, not with --set.")
        owners = {owner: recipe for recipe in recipes if (owner := recipe.owner(key))}
        if not owners:
            parse_settings(recipes[-1], [f"{key}=0"])  # raises, and names what there is
        if len(owners) > 1:
            told = " and ".join(f"of the {owner} in {_pair(recipe)}" for owner, recipe in owners.items())
            clear = " or ".join(f"{owner}.{key}" for owner in owners)
            raise ValueError(f"{key} is a setting {told}. Say which one: {clear}.")


def _pair(recipe: Recipe) -> str:
    return f"{recipe.algorithm.name} with {recipe.correction.name}"


def _refused(cells: Mapping[str, Mapping[str, Recipe]]) -> dict[str, dict[str, str]]:
    """The pairs that cannot be built, with the reason."""
    first = next(iter(next(iter(cells.values())).values()))
    task = task_of(replace(first, stream=first.stream or is_frozen(first)))

    def build(recipe: Recipe) -> None:
        if is_frozen(recipe):
            refuse_for_frozen(recipe, task.every_image())
        else:
            Step(recipe, task, CPU)

    refused: dict[str, dict[str, str]] = {algorithm: {} for algorithm in cells}
    for algorithm, row in cells.items():
        for correction, recipe in row.items():
            try:
                build(recipe)
            except NeedsPictures as error:
                refused[algorithm][correction] = str(error)
            except ValueError as error:
                # If one part is wrong by itself, it raises here; otherwise the pair is at fault.
                own = find("algorithm", recipe.algorithm.name).own_correction
                build(replace(recipe, correction=Choice(own)))
                build(replace(recipe, algorithm=Choice("fixmatch", {"joint": False})))
                refused[algorithm][correction] = str(error)
    return refused


def compare(
    planned: Plan,
    out: Path,
    resume: bool = False,
    overwrite: bool = False,
    workers: int | None = None,
    watch: Callable[[int, int], None] = lambda done, total: None,
    go_on: str = "compare(..., resume=True)",
    features: Path | None = None,
) -> Matrix | Comparison:
    """Train what was planned, and return the table; ``out`` then holds the runs, the table and ``results.json``.

    With ``resume`` runs that have ended are not repeated, also when methods have been added. ``watch`` is called with
    the steps done and the total.
    """
    jobs = planned.jobs(out)
    inputs = [job.recipe.to_json() for job in jobs.values()]
    with experiment_folder(out, "compare", resume, overwrite, inputs):
        different = list({job.out: job for job in jobs.values()}.values())
        _keep_to_device(out, planned.device)
        for job in different:
            Run.at(job.out, job.recipe, resume=True)  # refuses runs of other settings, before anything trains
        if is_frozen(different[0].recipe):
            ended, timing = timed(
                lambda done: _fit_all(different, features or out.resolve() / FEATURES, done, go_on), different, watch
            )
        else:
            ended, timing = timed(lambda done: train_all(different, workers, done, go_on), different, watch)
        results = {job.out: result for job, result in zip(different, ended, strict=True)}
        table = _table(planned, {key: results[job.out] for key, job in jobs.items()})
        numbers = {
            "recipe": planned.base.to_json(),
            "changes": planned.changes(),
            **table.to_json(),
            "timing": timing,
        }
        write_text(out / "table.md", table.to_markdown())
        write_json(out / "results.json", numbers)
        return table


def _fit_all(jobs: Sequence[Job], features: Path, watch: Callable[[int], None], go_on: str) -> list[dict[str, Any]]:
    """With a frozen encoder every run takes a second, on the same features."""
    settings, done, ended = jobs[0].recipe.network.settings, 0, []
    encoder = load_encoder(settings["source"], image_size=settings["architecture"]["image_size"])
    for job in jobs:
        ended.append(train_encoded(job.recipe, job.out, True, None, go_on, features, encoder))
        done += job.recipe.steps
        watch(done)
    return ended


def _table(planned: Plan, results: Mapping[tuple[str, str, int], dict[str, Any]]) -> Matrix | Comparison:
    """By method, the first of which is the baseline, or by algorithm and correction."""
    cells = {
        method: {name: [results[method, name, seed] for seed in planned.seeds] for name in row}
        for method, row in planned.cells.items()
    }
    if list(planned.corrections) == [NAMED]:
        runs = {method: row[NAMED] for method, row in cells.items() if row}
        return Comparison(planned.seeds, runs, next(iter(runs)))
    own = {algorithm: built_in(algorithm) for algorithm in planned.cells}
    return Matrix(planned.seeds, cells, planned.refused, own, planned.corrections)


def _keep_to_device(out: Path, device: str) -> None:
    """Raise where the runs in ``out`` have begun on another device: its rounding would be part of the differences."""
    mark = out / ".compare"
    before = mark.read_text().strip() or device
    if before != device:
        raise RunError(
            f"{out} was begun with --device {before}, and now it is {device}. Expected one device for all runs of a "
            f"comparison. Use --device {before}, or another --out."
        )
    write_text(mark, f"{device}\n")


def built_in(algorithm: str) -> str:
    """The correction that is built into an algorithm's paper: its name and settings."""
    made = find("algorithm", algorithm)
    return " ".join([made.own_correction, *(f"{key}={as_text(value)}" for key, value in made.own_settings.items())])

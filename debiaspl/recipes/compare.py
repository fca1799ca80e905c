"""Several methods on the same task and seeds, as a table.

debiaspl compare --methods fixmatch,debiaspl,mine.py:Mine+debiaser --seeds 5
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from debiaspl.encoders import load_encoder
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.features.run import is_frozen, refuse_for_frozen, train_encoded
from debiaspl.files import replacing, write_json, write_text
from debiaspl.recipes import recipe as recipe_named
from debiaspl.recipes.cells import CELLS
from debiaspl.recipes.comparison import Comparison
from debiaspl.training import Job, Recipe, Run, RunError, train_all
from debiaspl.training.build import NeedsPictures
from debiaspl.training.method import with_method
from debiaspl.training.parts import PARTS
from debiaspl.training.run import check_place
from debiaspl.training.settings import parse_settings, split_assignments
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

SHORT = tuple(cell.name for cell in CELLS.values() if cell.data == "digits")
DECIDED = {"algorithm": "--methods", "correction": "--methods", "seed": "--seeds"}


@dataclass(frozen=True)
class Plan:
    """The runs of a comparison. Planning trains and writes nothing, and finds mistakes early."""

    base: Recipe
    methods: Mapping[str, Recipe]
    """By the names that were typed."""
    seeds: Sequence[int]
    refused: Mapping[str, str]
    """Method -> why it cannot be trained."""
    settings: Mapping[str, str]
    device: str = "cpu"
    """Of all runs."""

    def notes(self) -> list[str]:
        """Settings that not every method has, and methods that cannot be trained."""
        notes = [f"{method}: {reason}" for method, reason in self.refused.items()]
        for key, text in self.settings.items():
            without = [method for method, recipe in self.methods.items() if not recipe.owner(key)]
            if without:
                notes.append(f"{key}={text} was not used by {', '.join(without)}: no such setting.")
        return notes

    def jobs(self, out: Path) -> dict[str, list[Job]]:
        """The runs of each method, one a seed."""
        jobs: dict[str, list[Job]] = {}
        for method, recipe in self.methods.items():
            name = re.sub(r"[^\w+.-]+", "-", method)
            runs = [replace(recipe, name=f"{self.base.name}-{name}-seed{seed}", seed=seed) for seed in self.seeds]
            jobs[method] = [Job(run, out / f"{name}-seed{run.seed}", self.device) for run in runs]
        return jobs


def plan(base: Recipe, methods: Sequence[str], seeds: Sequence[int], assignments: Iterable[str] = ()) -> Plan:
    """Plan a comparison. User files that are named are executed."""
    settings = split_assignments(assignments)
    if len(set(methods)) < len(methods) or not methods:
        raise ValueError(f"--methods is {','.join(methods)!r}, expected one name or more, each only once.")
    recipes = {method: _recipe_of(base, method, settings) for method in methods}
    _check_settings(recipes, settings)
    refused = _refused(recipes)
    trained = {method: recipe for method, recipe in recipes.items() if method not in refused}
    if not trained:
        raise ValueError(f"nothing can be trained. {' '.join(dict.fromkeys(refused.values()))}")
    return Plan(base, trained, seeds, refused, settings)


def base_recipe(name: str | None, length: str | None = None, settings: Sequence[str] = ()) -> Recipe:
    """The recipe that all runs share, on the data that ``settings`` name."""
    base, data = recipe_named(name or SHORT[0], length), split_assignments(settings).get("data")
    if data and name is None and data != base.data:
        raise ValueError(f"data={data} needs a --recipe; a folder of photos does not: debiaspl compare {data}.")
    return base if data is None else replace(base, data=data)


def _recipe_of(base: Recipe, method: str, settings: Mapping[str, str]) -> Recipe:
    """The base with this method, and those of ``settings`` that it has."""
    recipe = replace(with_method(base, method, load_files=True), paper=None)
    if base.name in SHORT:
        recipe = recipe.changed(**SETTINGS.get(recipe.algorithm.name, {}))
    # Parts first, and one by one: a part that is named has settings which the one before it did not have.
    for key in sorted(settings, key=lambda key: key not in PARTS):
        if recipe.owner(key):
            recipe = parse_settings(recipe, [f"{key}={settings[key]}"])
    return recipe


def _check_settings(recipes: Mapping[str, Recipe], settings: Iterable[str]) -> None:
    """Raise where a setting belongs to no method, or to different parts of different methods."""
    for key in settings:
        if key in DECIDED:
            raise ValueError(f"compare varies {key} itself. Choose it with {DECIDED[key]}, not with --set.")
        owners = {owner: method for method, recipe in recipes.items() if (owner := recipe.owner(key))}
        if not owners:
            parse_settings([*recipes.values()][-1], [f"{key}=0"])  # raises, and names what there is
        if len(owners) > 1:
            of = " and ".join(f"of the {owner} in {method}" for owner, method in owners.items())
            clear = " or ".join(f"{owner}.{key}" for owner in owners)
            raise ValueError(f"{key} is a setting {of}. Say which one: {clear}.")


def _refused(recipes: Mapping[str, Recipe]) -> dict[str, str]:
    """The methods that need pictures where there are none, with the reason; other mistakes are raised."""
    first = next(iter(recipes.values()))
    task = task_of(replace(first, stream=first.stream or is_frozen(first)))
    refused = {}
    for method, recipe in recipes.items():
        try:
            if is_frozen(recipe):
                refuse_for_frozen(recipe, task.every_image())
            else:
                # What it computes in is up to another device.
                Step(replace(recipe, precision="auto"), task, torch.device("cpu"))
        except NeedsPictures as error:
            refused[method] = str(error)
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
    kind: str = "compare",
    baseline: str | None = None,
) -> Comparison:
    """Train what was planned, and return the table; ``out`` then holds the runs, the table and ``results.json``.

    With ``resume`` runs that have ended are not repeated, also when methods have been added. ``watch`` is called with
    the steps done and the total. ``kind`` is the name of the command; ``baseline`` is by default the first method.
    """
    jobs = planned.jobs(out)
    every = [job for runs in jobs.values() for job in runs]
    inputs = [job.recipe.to_json() for job in every]
    with experiment_folder(out, kind, planned.device, resume, overwrite, inputs):
        for job in every:
            Run.at(job.out, job.recipe, resume=True)  # refuses runs of other settings, before anything trains
        total, began = sum(job.recipe.steps for job in every), time.monotonic()

        if is_frozen(every[0].recipe):
            ended = []
            for result in _fitted(every, features or out.resolve() / FEATURES, go_on):
                ended.append(result)
                watch(sum(job.recipe.steps for job in every[: len(ended)]), total)
        else:
            ended = train_all(every, workers, lambda steps: watch(steps, total), go_on)
        seconds, results = round(time.monotonic() - began, 1), iter(ended)
        each = {method: [next(results) for _ in runs] for method, runs in jobs.items()}
        comparison = Comparison(planned.seeds, each, baseline or next(iter(each)))
        numbers = {
            "recipe": planned.base.to_json(),
            "changes": {method: planned.base.diff(recipe) for method, recipe in planned.methods.items()},
            **comparison.to_json(),
            "timing": {"seconds": seconds, "seconds_of_runs": sum(run["timing"]["seconds"] for run in ended)},
        }
        write_text(out / "table.md", comparison.to_markdown())
        write_json(out / "results.json", numbers)
        return comparison


@contextmanager
def experiment_folder(
    out: Path, kind: str, device: str, resume: bool, overwrite: bool, inputs: Iterable[Any] = ()
) -> Iterator[None]:
    """Make ``out`` a folder that is free, or holds an experiment of this ``kind``. A hidden file tells the kind and the
    device: the rounding of another device would be part of the differences."""
    mark = out / f".{kind}"
    check_place(out, mark.name, kind, resume or overwrite)
    with replacing(out, overwrite and mark.exists(), inputs):
        before = (mark.read_text().strip() if mark.exists() else "") or device
        if before != device:
            raise RunError(f"{out} was begun with --device {before}. Use --device {before}, or another --out.")
        write_text(mark, f"{device}\n")
        yield


def _fitted(jobs: Sequence[Job], features: Path, go_on: str) -> Iterator[dict[str, Any]]:
    """With a frozen encoder every run takes a second, on the same features."""
    settings = jobs[0].recipe.network.settings
    encoder = load_encoder(settings["source"], image_size=settings["architecture"]["image_size"])
    for job in jobs:
        yield train_encoded(job.recipe, job.out, True, go_on, features, encoder)

"""Run again what a result file records, and say whether the new numbers agree with the recorded ones.

    debiaspl repeat results/start/cifar10-40/cifar10-40-start.json --fold 3

A file of benchmarks/gain.py records a recipe and its folds, and the command of the start where it has one; results.json
of a run records one fold. Nothing in a file is executed: the commands in it are parsed.
"""

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from debiaspl.files import write_json
from debiaspl.models.start import find_start
from debiaspl.recipes import recipe as recipe_named
from debiaspl.recipes.result_files import read_result
from debiaspl.recipes.results import computed
from debiaspl.report.intervals import next_interval
from debiaspl.training import Recipe, Run, RunError
from debiaspl.training.loop import RunOptions, train_as
from debiaspl.training.parts import PARTS, is_at_hand

FINEST = 0.01
"""Points: one of 10,000 test images."""


@dataclass(frozen=True)
class Recorded:
    """The content of a result file."""

    path: Path
    recipe: Recipe
    accuracy: Mapping[int, float]
    """By fold, in %."""
    start: Recipe | None = None
    """The recipe of its start; None without one."""
    start_per_fold: bool = False
    """Whether each fold has a start of its own, with its seed."""


@dataclass(frozen=True)
class Planned:
    """Runs that repeat a file, in the order of training."""

    recorded: Recorded
    starts: Mapping[Path, Recipe]
    runs: Mapping[int, tuple[Path, Recipe]]
    """By fold."""
    changed: tuple[str, ...]
    """Settings that change what is computed."""
    given_start: str | None = None
    """A start that is not trained again."""


def read_recorded(path: Path) -> Recorded:
    """Read a result file; raises where it records no run."""
    try:
        found = read_result(path)
    except OSError as error:
        raise RunError(
            f"{path} cannot be read: {error.strerror}. Expected a result file, such as {_EXAMPLE}."
        ) from error
    except ValueError as error:
        raise RunError(f"{path} is not JSON: {error}. Expected a result file, such as {_EXAMPLE}.") from error
    if not isinstance(found, dict) or not isinstance(found.get("recipe"), dict) or "algorithms" in found:
        holds = ", ".join(list(found)[:8]) if isinstance(found, dict) else type(found).__name__
        hint = (
            " A comparison is repeated with debiaspl compare."
            if isinstance(found, dict) and "algorithms" in found
            else ""
        )
        raise RunError(
            f"{path} records no run that can be repeated: it holds {holds or 'nothing'}. Expected recipe and folds, as "
            f"in {_EXAMPLE}, or results.json of a run.{hint}"
        )
    try:
        recipe = Recipe.from_json(found["recipe"])
        folds = found["folds"] if "folds" in found else [{"fold": recipe.seed, "accuracy": found["accuracy"]}]
        accuracy = {int(fold.get("fold", place)): _percent(fold["accuracy"]) for place, fold in enumerate(folds)}
        if not accuracy:
            raise ValueError("it has no folds")
        if "start_command" in found:
            start, per_fold = _start(found["start_command"])
            return Recorded(path, recipe, accuracy, start, per_fold)
        return Recorded(path, recipe, accuracy)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        told = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise RunError(f"{path} is damaged or of another version of debiaspl: {told}") from error


_EXAMPLE = "results/start/cifar10-40/cifar10-40-start.json"


def _percent(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not (math.isfinite(value) and 0 <= value <= 1):
        raise ValueError(f"the accuracy of a fold is {value!r}, expected a number from 0 to 1")
    return 100 * value


def _start(command: Any) -> tuple[Recipe, bool]:
    """``debiaspl train --recipe NAME --set KEY=VALUE ...``, and whether it sets a seed: then each fold has its own."""
    typed = shlex.split(command) if isinstance(command, str) else []
    settings = typed[5::2]
    if typed[:3] != ["debiaspl", "train", "--recipe"] or len(typed) < 4 or set(typed[4::2]) - {"--set"}:
        raise ValueError(f"its start_command is {command!r}, expected debiaspl train --recipe NAME --set KEY=VALUE")
    return recipe_named(typed[3]).with_settings(settings), any(one.startswith("seed=") for one in settings)


def plan(
    recorded: Recorded,
    folds: Sequence[int],
    out: Path,
    settings: Sequence[str] = (),
    start_settings: Sequence[str] = (),
) -> Planned:
    """The runs to train; ``folds`` are all recorded ones unless given. Trains nothing, and finds mistakes early."""
    base = recorded.recipe.with_settings(settings, load_files=True)
    for part in PARTS:
        name = getattr(base, part).name
        if not is_at_hand(part, name):
            raise RunError(
                f"{recorded.path} uses the user file {name}, which is not executed without your permission. If you "
                f"trust it: --set {part}={name}"
            )
    chosen = list(dict.fromkeys(folds)) or list(recorded.accuracy)
    if any(_key(setting) == "seed" for setting in settings):
        raise ValueError("the fold is the seed. Choose it with --fold, not with --set.")
    own_start = any(_key(setting) == "start" for setting in settings)
    starts: dict[Path, Recipe] = {}
    runs = {}
    for fold in chosen:
        recipe = replace(base, seed=fold)
        if recorded.start is not None and recorded.recipe.start and not own_start:
            place = out / (f"start-{fold}" if recorded.start_per_fold else "start")
            start = recorded.start.with_settings(start_settings)
            starts[place] = replace(start, seed=fold) if recorded.start_per_fold else start
            recipe = replace(recipe, start=str(place))
        elif recipe.start:
            find_start(recipe.start)  # raises, and says what to do
        runs[fold] = out / f"fold-{fold}", recipe
    if start_settings and not starts:
        raise ValueError(f"--set-start is given, but no start is trained: {recorded.path} records no start command.")
    changed = [*_changes(recorded.recipe, settings), *(f"start: {one}" for one in start_settings)]
    return Planned(recorded, starts, runs, tuple(changed), base.start if own_start else None)


def _key(setting: str) -> str:
    return setting.partition("=")[0].strip()


def _changes(before: Recipe, settings: Sequence[str]) -> Iterator[str]:
    """Settings that change what is computed. Another start counts as the recorded one; no start is a change."""
    for setting in settings:
        now = before.with_settings([setting], load_files=True)
        same_start = replace(now, start=before.start) if now.start and before.start else now
        if computed(same_start) != computed(before):
            yield setting
        before = now


def repeat(
    planned: Planned,
    out: Path,
    options: RunOptions,
    watch: Callable[[str], None] = lambda text: None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Train all of it, and return what ``out/repeat.json`` then holds."""
    jobs = {**planned.starts, **dict(planned.runs.values())}
    with ExitStack() as stack:  # all folders are checked before anything trains
        for place, recipe in jobs.items():
            ours = replace(recipe, start="") if Path(recipe.start) in planned.starts else recipe
            stack.enter_context(Run(place).replacing(ours, overwrite))
            Run.at(place, recipe, options.resume)
        for place, recipe in planned.starts.items():
            watch(f"The start, {recipe.name}, {recipe.steps:,} steps: {place}")
            train_as(options, recipe, place)
        now = {}
        for fold, (place, recipe) in planned.runs.items():
            watch(f"Fold {fold}, {recipe.steps:,} steps: {place}")
            now[fold] = 100 * train_as(options, recipe, place)["accuracy"]
        result = compared(planned, now)
        write_json(out / "repeat.json", result)
        return result


def compared(planned: Planned, now: Mapping[int, float]) -> dict[str, Any]:
    """Recorded and new numbers by fold, in %, and whether each new one lies within the 95 % interval that the recorded
    folds give for a further run; ``within`` is None where there is no interval."""
    recorded = planned.recorded.accuracy
    interval = None if planned.changed else next_interval(list(recorded.values()), FINEST)
    folds = [
        {
            "fold": fold,
            "recorded": recorded.get(fold),
            "now": value,
            "within": None if interval is None else interval[0] <= value <= interval[1],
        }
        for fold, value in now.items()
    ]
    return {
        "file": str(planned.recorded.path),
        "recipe": planned.recorded.recipe.name,
        "changed": list(planned.changed),
        "given_start": planned.given_start,
        "recorded_folds": len(recorded),
        "interval": interval,
        "folds": folds,
        "within": None if interval is None else all(fold["within"] for fold in folds),
    }


def recorded_folds(planned: Planned) -> list[str]:
    """Which folds the file records, and which of those to be trained it does not: said before anything trains."""
    recorded = planned.recorded
    there, others = list(recorded.accuracy), [fold for fold in planned.runs if fold not in recorded.accuracy]
    said = [f"{recorded.path} records {recorded.recipe.name}, {_folds(there)}."]
    if others:
        said.append(f"It does not record {_folds(others)}: there is no number to compare with.")
    return said


def _folds(numbers: Sequence[int]) -> str:
    return f"fold{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def in_words(result: Mapping[str, Any]) -> list[str]:
    """What ``compared`` found, line by line."""
    said = []
    for fold in result["folds"]:
        before, now = fold["recorded"], fold["now"]
        told = "not recorded" if before is None else f"recorded {before:.2f} %"
        difference = "" if before is None else f" ({now - before:+.2f})"
        said.append(f"fold {fold['fold']}: {told}, now {now:.2f} %{difference}")
    if result["given_start"]:
        said.append(f"The start {result['given_start']} was used instead of training the recorded one.")
    if result["changed"]:
        said.append(f"Not comparable: {', '.join(result['changed'])} was changed, so this is a different experiment.")
    elif result["interval"] is None:
        said.append("The file records one fold, which has no spread, so the numbers cannot be tested.")
    else:
        low, high = result["interval"]
        outside = [str(fold["fold"]) for fold in result["folds"] if not fold["within"]]
        found = "Within" if not outside else f"Outside, in fold {', '.join(outside)},"
        said.append(
            f"{found} the interval in which 95 % of further runs lie, by Student's t over {result['recorded_folds']} "
            f"recorded folds: {low:.2f} to {high:.2f} %."
        )
    return said

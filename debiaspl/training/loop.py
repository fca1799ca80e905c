"""The loop: read it from top to bottom, nothing is hidden."""

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from debiaspl._shares import distance
from debiaspl.data import Task, digest
from debiaspl.encoders import Encoded
from debiaspl.files import digest_if_there
from debiaspl.models import start_digest
from debiaspl.models.start import HEAD
from debiaspl.training import checkpoint as checkpoints
from debiaspl.training.checkpoint import Checkpoint
from debiaspl.training.device import find_device
from debiaspl.training.errors import Interrupted, RunError
from debiaspl.training.evaluate import evaluate
from debiaspl.training.frozen import FEATURES, check_frozen, encoded, is_frozen
from debiaspl.training.group import TIMEOUT, Group, joined
from debiaspl.training.health import Health
from debiaspl.training.log import Log, NoLog, ProgressLine
from debiaspl.training.recipe import Recipe
from debiaspl.training.results import End, about, measured, mode, on_the_test_set, timing, without_labels
from debiaspl.training.run import Run
from debiaspl.training.signals import stop_requests
from debiaspl.training.step import Step
from debiaspl.training.tasks import Data, handed_over, task_of


@dataclass(frozen=True)
class RunOptions:
    """How a recipe is trained: all that does not change what is computed. The first six are those of ``train``."""

    resume: bool = False
    device: str | None = None
    workers: int = 2
    root: str | Path | None = None
    eager: bool = False
    timeout: float = TIMEOUT
    go_on: str = "debiaspl.train with resume=True"
    """How the message of an interrupted run tells its user to go on."""
    end: End = on_the_test_set
    """How it is measured when it has ended."""
    part: str = ""
    """For the progress line, where this is one of several runs: ``run 2 of 8``."""
    features: Path | None = None
    """Where the features of a frozen encoder are kept; beside the run, unless given."""


def train(
    recipe: Recipe,
    out: str | Path,
    data: Data | None = None,
    resume: bool = False,
    device: str | None = None,
    workers: int = 2,
    root: str | Path | None = None,
    eager: bool = False,
    timeout: float = TIMEOUT,
) -> dict[str, Any]:
    """Train ``recipe`` into the folder ``out`` and return what ``out/results.json`` holds.

    In processes that torchrun has started it trains in all of them together. The first one alone writes the folder, and
    what the others need of it they are sent.

    Args:
        recipe: what to compute.
        out: the run's folder; it must be free, unless ``resume``.
        data: what to learn from, instead of what the recipe names: a ``Task``; an ``ImageSet``; or a pair of arrays,
            images and class numbers. Where every image has a label, the recipe's protocol hides some, and a fifth of
            each class is held out to test with; where some have -1, the others are what is learned from, and
            measured with: hand over a ``Task`` to have a test set. Where none has one, an algorithm that learns
            without labels is needed, such as ``moco``; the pair is then images and None.
        resume: go on from the newest checkpoint; the end is the same, bit for bit, as without the stop. A run that has
            ended is not repeated, and one that had not begun begins.
        device: ``cuda`` if there is one, else ``cpu``, unless named.
        workers: processes that read images from files, where the images are not in memory; they do not change a bit.
        root: a further folder to look for known sets in, after $DEBIASPL_DATA and ~/.cache/debiaspl.
        eager: on a GPU, do not record the step; the same bits, more slowly, for code that cannot be recorded.
        timeout: seconds after which a process that does not answer the others ends the run, where there are several.
    """
    if data is not None:
        recipe, data = handed_over(recipe, data)
    return train_as(RunOptions(resume, device, workers, root, eager, timeout), recipe, out, data)


def train_as(options: RunOptions, recipe: Recipe, out: str | Path, data: Data | None = None) -> dict[str, Any]:
    """``train`` for the other rooms. Data that they hand over are those that the recipe names, read before."""
    where = find_device(options.device)
    with joined(where, options.timeout) as group, group.watched():
        run = Run(Path(out))
        if group.first:
            run = Run.at(run.folder, recipe, options.resume or group.begun_before())
            group.note_begun()
        ended = group.from_first(run.results() if group.first else None)
        if ended is not None:
            return ended

        task, vectors = task_of(recipe, data, options.root), None
        facts = about(recipe, task.labeled)
        begun = bool(group.from_first(checkpoints.steps(run.folder / "checkpoint") if group.first else None))
        with ExitStack() as claimed:
            if is_frozen(recipe):
                check_frozen(recipe, task)
                _claim(claimed, run, recipe, group)  # features take long: nobody else is to begin here meanwhile
                folder = options.features or run.folder.resolve().parent / FEATURES
                vectors = encoded(recipe, task, where, folder, group, options.go_on)
                task = vectors.task
            step = Step(recipe, task, where, options.workers, not options.eager, not begun, group, vectors)
            try:
                if vectors is None:
                    _claim(claimed, run, recipe, group)  # what cannot be built leaves no folder behind
                return _train(recipe, run, step, group, options, facts, vectors)
            finally:
                del step  # it must be gone when the group is left


def _claim(claimed: ExitStack, run: Run, recipe: Recipe, group: Group) -> None:
    if group.first:
        claimed.enter_context(run.begin(recipe))


def fit(recipe: Recipe, task: Task, device: torch.device) -> Step:
    """The same in memory, without a folder: the step after the last one, whose ``finished()`` is the model."""
    step = Step(recipe, task, device)
    for number in range(recipe.steps):
        step(number)
    bad = int(step.first_bad_step)
    if bad >= 0:
        raise ValueError(f"the loss of step {bad} is not a finite number, expected one: data of other values?")
    return step


def _train(
    recipe: Recipe,
    run: Run,
    step: Step,
    group: Group,
    options: RunOptions,
    facts: dict[str, str],
    vectors: Encoded | None = None,
) -> dict[str, Any]:
    saved = group.from_first(run.checkpoint() if group.first else None)
    origin = {"device": step.device.type, "data": digest(step.task)}
    files = _files(recipe, step)
    # They are read by those that begin alone: later on, some machines may not have them any more.
    _check_alike(origin if saved is not None else {**origin, **files}, group)
    if saved is not None:
        begun = _files_of(saved)
        _check_origin(saved, origin, run)
        _check_files(begun, group.from_first(files), run)
        files = begun
        step.load(saved.tensors)
        step.skipped = dict(saved.facts["skipped"])
    elif vectors is not None and group.first:
        step.skipped = dict(vectors.skipped)
    number, seconds_before, log_length = _place(saved)
    started = time.monotonic()

    def seconds() -> float:
        return seconds_before + time.monotonic() - started

    def save() -> None:
        _refuse_bad(step, run, group)
        state, step.skipped = step.state(), group.merged(step.skipped)
        if group.first:
            place = {"seconds": seconds(), "log_length": log.length(), "skipped": step.skipped}
            run.save(Checkpoint(number, state, {"recipe": recipe.to_json(), **origin, "files": files, **place}))

    with (
        Log(run.log_path, log_length) if group.first else NoLog() as log,
        ProgressLine(recipe.name, number, recipe.steps, part=options.part) as progress,
        stop_requests(again=group.count > 1) as stop_requested,
        group.watched(stop_requested),
    ):
        health = Health(step, group, run.log() if group.first else [])
        if number == 0 and health.due(0):
            record = {"step": 0, "losses": {}}
            log.write(record | health.look(record) | {"seconds": round(seconds(), 3)})
        while number < recipe.steps:
            step(number)
            number += 1

            last = number == recipe.steps
            evaluation_due = recipe.evaluate_every and number % recipe.evaluate_every == 0
            if last or evaluation_due or health.due(number) or number % recipe.log_every == 0:
                _refuse_bad(step, run, group)
                step.skipped = group.merged(step.skipped)
                record = _record(step, number)
                if evaluation_due:
                    record["accuracy"] = evaluate(step.finished(), step.task.test, group).accuracy
                if health.due(number):
                    record |= health.look(record)
                log.write(record | {"seconds": round(seconds(), 3)})
                if group.first:
                    progress.show(number, record)
            if last or number % recipe.checkpoint_every == 0:
                save()
            if not last and (asked := group.agreed_stop(number, stop_requested())):
                save()
                reached = f"step {number} of {recipe.steps}" + (f" of {options.part}" if options.part else "")
                raise Interrupted(f"Stopped and saved at {reached}. Go on with: {options.go_on}", asked)

    model = step.finished()
    predict = partial(evaluate, model, group=group)
    # Every rank measures, though the first alone needs it: each predicts its share.
    labels = step.task.has_labels
    ending = options.end(predict, step.task) if labels else without_labels(predict, step.task)
    if labels and not step.algorithm.learns_labels:
        ending = replace(ending, evaluated=f"nearest class mean of the labeled images; {ending.evaluated}")
    elif labels and step.algorithm.classifier() is not None:
        ending = replace(ending, evaluated=f"the further classifier of the algorithm; {ending.evaluated}")
    history = run.log() if group.first else []
    results = measured(recipe, step.task, mode(recipe, step), predict, ending, history)
    if group.first:
        results |= {name: found for name, found in files.items() if found}
        results |= {"timing": timing(seconds(), step.device) | {"processes": group.count}}
        whole = model if vectors is None else vectors.whole(model)
        weights = {name: value for name, value in whole.state_dict().items() if labels or not name.startswith(HEAD)}
        run.finish(weights | step.heads(), facts, ending.predictions, results)
    return group.from_first(results)


def _check_origin(saved: Checkpoint, origin: dict[str, str], run: Run) -> None:
    if saved.facts["device"] != origin["device"]:
        raise RunError(
            f"{run.folder} was begun on a {saved.facts['device']}, and this is a {origin['device']}, whose random "
            "numbers are others. Go on with --device, or begin another run."
        )
    if saved.facts["data"] != origin["data"]:
        raise RunError(
            f"the images or labels are not those that {run.folder} was begun with: files were added, removed or "
            "labeled anew. Test images may have been trained on, so it is not gone on with. Begin another run."
        )


def _files(recipe: Recipe, step: Step) -> dict[str, str]:
    """Digests of what a run begins with: the start, and what the algorithm reads; nothing for a file that is gone."""
    own = {name: digest_if_there(path) for name, path in step.algorithm.files().items()}
    return {"start": start_digest(recipe.start), **own}


def _files_of(saved: Checkpoint) -> dict[str, str]:
    """What the run did begin with; an earlier version knew of the start alone."""
    files: dict[str, str] = saved.facts.get("files", {"start": saved.facts.get("start", "")})
    return files


def _check_files(begun: dict[str, str], now: dict[str, str], run: Run) -> None:
    for name, digest_now in now.items():
        if digest_now and begun.get(name, digest_now) != digest_now:
            raise RunError(
                f"the {name} that {run.folder} began with has another content now. The run has its weights, and does "
                "not need the file: bring the old one back, move the new one away, or begin another run with it."
            )


def _place(saved: Checkpoint | None) -> tuple[int, float, int]:
    """Steps taken, seconds spent and bytes logged so far."""
    return (0, 0.0, 0) if saved is None else (saved.step, saved.facts["seconds"], saved.facts["log_length"])


def _check_alike(origin: dict[str, str], group: Group) -> None:
    """All ranks must draw from the same images in the same order."""
    if group.largest(origin != group.from_first(origin)):
        raise RunError(
            "the ranks do not train on the same device and data: their images or labels differ, or the start does. "
            "Give every machine the same files; in folders, names and contents count."
        )


def _refuse_bad(step: Step, run: Run, group: Group) -> None:
    """Stop at a loss that was not finite, before anything made from it is saved."""
    group.largest(0)  # the hosts first: to look at the device is to wait for it, without end if another rank hangs
    found, never = int(step.first_bad_step), step.recipe.steps
    # The first of all: a gradient that is not finite spoils the next step of every rank.
    bad = -group.largest(-found if found >= 0 else -never)
    if bad == never:
        return
    numbers = checkpoints.steps(run.folder / "checkpoint")
    kept = f"The checkpoint of step {numbers[-1]} is kept" if numbers else "There was no checkpoint yet"
    raise RunError(
        f"the loss of step {bad} is not finite, expected a number; the run has stopped. {kept} in {run.folder}. "
        "A smaller learning_rate is the first thing to try, in a new run."
    )


def _record(step: Step, number: int) -> dict[str, Any]:
    """A line of the log."""
    record = {"step": number, **step.monitor.summary()}
    prior = getattr(step.algorithm.correction, "prior", None)
    if prior is not None:
        record["prior"] = prior.tolist()
    followed = record.get("prior") or record.get("marginal")
    if followed:
        record["distance"] = distance(followed, step.monitor.true)
    if step.skipped:
        record["skipped"], step.skipped = step.skipped, {}
    return record

"""The training loop. Read it from top to bottom: nothing is hidden."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from debiaspl._measures import distance
from debiaspl.data import digest
from debiaspl.files import digest_if_there
from debiaspl.models import start_digest
from debiaspl.models.start import HEAD
from debiaspl.training.classifier import first_classifier
from debiaspl.training.evaluate import WITHOUT_LABELS, End, about, evaluate, measured, mode, on_the_test_set, timing
from debiaspl.training.group import TIMEOUT, Group, joined
from debiaspl.training.log import Log, ProgressLine, event_files, summary_writer
from debiaspl.training.monitor import Health
from debiaspl.training.parts import OwnCode, allowed_network
from debiaspl.training.process import Interrupted, RunError, find_device, stop_requests
from debiaspl.training.recipe import Recipe
from debiaspl.training.run import Checkpoint, Run, checkpoint_steps
from debiaspl.training.step import Begin, Step
from debiaspl.training.tasks import Data, given_task, task_of

OnLog = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class RunOptions:
    """Options that do not change what is computed."""

    resume: bool = False
    device: str | None = None
    workers: int = 2
    eager: bool = False
    timeout: float = TIMEOUT
    go_on: str = "debiaspl.train with resume=True"
    """How to resume, for the message of an interrupted run."""
    end: End = on_the_test_set
    """How the finished run is measured."""
    part: str = ""
    """``part``, ``after`` and ``shown`` are those of the progress line."""
    after: float = 0.0
    on_log: OnLog | None = None
    tensorboard: bool = False
    shown: bool = True


def train(
    recipe: Recipe,
    out: str | Path,
    data: Data | None = None,
    resume: bool = False,
    device: str | None = None,
    workers: int = 2,
    eager: bool = False,
    timeout: float = TIMEOUT,
    on_log: OnLog | None = None,
    tensorboard: bool = False,
    network: OwnCode | None = None,
) -> dict[str, Any]:
    """Train ``recipe`` into the folder ``out`` and return the content of ``out/results.json``. Under torchrun, all
    processes train together, and only the first one writes the folder.

    Args:
        recipe: what to compute.
        out: the run's folder; it must not exist or be empty, unless ``resume``.
        data: training data, instead of the recipe's: a ``Task``; an ``ImageSet``; or a pair of arrays, images and class
            numbers. If every image has a label, the recipe's protocol hides some, and a fifth of each class is held out
            for testing. If some have -1, the others are used for training and for measuring: pass a ``Task`` to have a
            test set. If none has a label, a self-supervised algorithm is needed, such as ``moco``; the pair is then
            images and None.
        resume: continue from the newest checkpoint; the result is the same, bit for bit, as without the interruption. A
            finished run is not repeated, and a new one starts.
        device: ``cuda`` or ``cpu``; by default ``cuda`` if available.
        workers: processes that read images from files, if the images are not in memory; they do not change the result.
        eager: do not record the step on a GPU; the same bits, but slower, for code that cannot be recorded.
        timeout: with several processes, seconds after which one that does not answer ends the run.
        on_log: called with each record that is written to log.jsonl: ``lambda record: print(record["losses"])``.
        tensorboard: write TensorBoard event files beside log.jsonl; needs ``pip install 'debiaspl[tensorboard]'``.
        network: your own network, instead of the recipe's: a module that turns images, (N, C, H, W) with values in
            -1..1, into logits; a function ``build(num_classes)`` that returns one; or its file, ``mine.py:build``. Its
            last linear layer is the classifier. Pass it again to resume, and to ``load_model``.
    """
    if not isinstance(recipe, Recipe):
        raise TypeError(f"recipe is {recipe!r}, expected a Recipe, such as debiaspl.recipe('digits-10').")
    if network is not None:
        recipe = recipe.changed(network=allowed_network(network).name)
    if data is not None:
        recipe, data = given_task(recipe, data)
    options = RunOptions(resume, device, workers, eager, timeout, on_log=on_log, tensorboard=tensorboard)
    return train_as(options, recipe, out, data)


def train_as(
    options: RunOptions,
    recipe: Recipe,
    out: str | Path,
    data: Data | None = None,
    begin: Begin = first_classifier,
) -> dict[str, Any]:
    """``train`` for other packages of debiaspl. ``data`` must be the data that the recipe names, already loaded;
    ``begin`` is as in ``Step``."""
    where = find_device(options.device)
    if options.tensorboard:
        summary_writer()  # raises if it is not installed, before anything is written
    with joined(where, options.timeout) as group:
        run = Run.at(Path(out), recipe, options.resume) if group.first else Run(Path(out))
        ended = group.from_first(run.results() if group.first else None)
        if ended is not None:
            return ended

        if recipe.network.settings.get("frozen"):
            raise RunError("a frozen encoder is not trained step by step. Use train_photos, or frozen=false.")
        task = task_of(recipe, data)
        begun = bool(group.from_first(checkpoint_steps(run.checkpoints) if group.first else None))
        # A run that cannot be built leaves no folder behind.
        step = Step(recipe, task, where, options.workers, not options.eager, not begun, group, begin)
        try:
            with run.begin(recipe) if group.first else nullcontext():
                return _train(recipe, run, step, group, options)
        finally:
            del step  # it must be gone before the group is destroyed


def _train(recipe: Recipe, run: Run, step: Step, group: Group, options: RunOptions) -> dict[str, Any]:
    saved = group.from_first(run.checkpoint() if group.first else None)
    origin = {"device": step.device.type, "data": digest(step.task)}
    # Empty for a missing file.
    own = {name: digest_if_there(path) for name, path in step.algorithm.files().items()}
    files = {"start": start_digest(recipe.start), **own}
    # Files are only read by new runs: later, some machines may no longer have them.
    alike = origin if saved is not None else origin | files
    if group.largest(alike != group.from_first(alike)):  # all must draw from the same images in the same order
        raise RunError("the ranks differ in device, images, labels or start. Give every machine the same files.")
    number, seconds_before, log_length = 0, 0.0, 0
    lost = group.first and saved is None and run.log_path.exists()
    if saved is not None:
        _check_resumed(saved, origin, group.from_first(files), run)
        files = saved.facts["files"]
        step.load(saved.tensors)
        step.skipped = dict(saved.facts["skipped"])
        number, seconds_before, log_length = saved.step, saved.facts["seconds"], saved.facts["log_length"]
    started = time.monotonic()

    def seconds() -> float:
        return seconds_before + time.monotonic() - started

    def save() -> None:
        _refuse_bad(step, run, group)
        state, step.skipped = step.state(), group.merged(step.skipped)
        if log is not None:
            place = {"seconds": seconds(), "log_length": log.length(), "skipped": step.skipped}
            run.save(Checkpoint(number, state, {"recipe": recipe.to_json(), **origin, "files": files, **place}))

    def write(record: dict[str, Any]) -> None:
        record["seconds"] = round(seconds(), 3)
        if log is not None:
            log.write(record)
            for call in (options.on_log, write_events):
                if call is not None:
                    call(record)

    with (
        Log(run.log_path, log_length) if group.first else nullcontext() as log,
        ProgressLine(recipe.name, number, recipe.steps, options.part, options.after, options.shown) as progress,
        stop_requests(again=group.count > 1) as stop_requested,
        event_files(run.folder, number) if options.tensorboard and group.first else nullcontext() as write_events,
    ):
        if lost:
            progress.tell(f"{run.folder} was stopped before its first checkpoint, so it starts again at step 0.")
        records = [] if log is None else log.records  # only the first rank's are used
        health = Health(step, group, records)
        if number == 0 and health.due(0):
            record = {"step": 0, "losses": {}}
            write(record | health.measure(record))
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
                    record |= health.measure(record)
                write(record)
                if group.first:
                    progress.show(number, record)
            if last or number % recipe.checkpoint_every == 0:
                save()
            if not last and (asked := group.agreed_stop(number, stop_requested())):
                save()
                reached = f"step {number} of {recipe.steps}" + (f" of {options.part}" if options.part else "")
                raise Interrupted(f"Stopped and saved at {reached}. Resume with: {options.go_on}", asked)

    model = step.finished()
    predict = partial(evaluate, model, group=group)
    # Every rank measures, although only the first needs the result: each predicts its share.
    labels, ending = step.task.has_labels, WITHOUT_LABELS
    if labels:
        ending, further = options.end(predict, step.task), step.algorithm.classifier() is not None
        which = "the further classifier of the algorithm; " if further else ""
        which = which if step.algorithm.learns_labels else "nearest class mean of the labeled images; "
        ending = replace(ending, evaluated=f"{which}{ending.evaluated}")
    results = measured(recipe, step.task, mode(recipe, step.algorithm), predict, ending, records)
    if group.first:
        results |= {name: found for name, found in files.items() if found}
        results |= {"timing": timing(seconds(), step.device) | {"processes": group.count}}
        weights = {name: value for name, value in model.state_dict().items() if labels or not name.startswith(HEAD)}
        run.finish(weights | step.heads(), about(recipe, step.task.labeled), ending.predictions, results)
    return group.from_first(results)


def _check_resumed(saved: Checkpoint, origin: dict[str, str], files: dict[str, str], run: Run) -> None:
    then, now = saved.facts["device"], origin["device"]
    if then != now:
        other = "which has other random numbers. Use the right --device"
        raise RunError(f"{run.folder} was started on a {then}, and this is a {now}, {other}.")
    if saved.facts["data"] != origin["data"]:
        raise RunError(f"the images or labels of {run.folder} have changed: it cannot be resumed. Start another run.")
    for name, digest_now in files.items():
        if digest_now and saved.facts["files"].get(name, digest_now) != digest_now:
            raise RunError(f"the {name} with which {run.folder} was started has changed. Restore it, or move it away.")


def _refuse_bad(step: Step, run: Run, group: Group) -> None:
    """Stop if a loss was not finite, before anything made from it is saved."""
    group.largest(0)  # first between the hosts: reading from the device would wait forever if another rank hangs
    found, never = int(step.first_bad_step), step.recipe.steps
    # The first bad step of all ranks: a gradient that is not finite spoils the next step of every rank.
    bad = -group.largest(-found if found >= 0 else -never)
    if bad == never:
        return
    numbers = checkpoint_steps(run.checkpoints)
    kept = f"The checkpoint of step {numbers[-1]} is kept" if numbers else "There is no checkpoint yet"
    raise RunError(f"the loss of step {bad} is not finite. {kept} in {run.folder}. Try a smaller learning_rate.")


def _record(step: Step, number: int) -> dict[str, Any]:
    record = {"step": number, **step.monitor.summary()}
    if (prior := getattr(step.algorithm.correction, "prior", None)) is not None:
        record["prior"] = prior.tolist()
    if followed := record.get("prior") or record.get("marginal"):
        record["distance"] = distance(followed, step.monitor.true)
    if step.skipped:
        record["skipped"], step.skipped = step.skipped, {}
    return record

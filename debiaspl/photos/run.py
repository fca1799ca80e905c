"""Photos with a network that learns its features: a run, the supervised one, and one for each fold of the check."""

import re
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from debiaspl._measures import Cells
from debiaspl.data import UNLABELED, GivenLabels, ImageSet, NoLabels, Task
from debiaspl.deploy.saved import hand_out
from debiaspl.features.begin import begin
from debiaspl.features.crosscheck import SUPERVISED, Candidate, choose
from debiaspl.photos.check import Check, Outcome, check_for, cross_check, methods_to_compare, with_fold
from debiaspl.photos.choose import START_FOLDER
from debiaspl.photos.survey import Photos
from debiaspl.training import Interrupted, Recipe, Run, RunError
from debiaspl.training.classifier import RANDOM, refuse_random_features
from debiaspl.training.evaluate import Ending, Evaluation, Predict, on_the_test_set
from debiaspl.training.log import ProgressLine
from debiaspl.training.loop import RunOptions, train_as
from debiaspl.training.method import method_of
from debiaspl.training.tasks import task_of

CHECKS, FROZEN = "check", "frozen"
"""Folders of the folds and of the fit of a frozen encoder, below that of the run."""


def train_networks(
    recipe: Recipe,
    check: Check,
    out: Path,
    options: RunOptions,
    start: Recipe | None = None,
    first: Callable[..., Outcome] | None = None,
) -> Outcome:
    """Train the recipe into ``out``, the supervised baseline into ``out/supervised`` and, where labels are
    cross-checked, a run for each fold into ``out/check``. A ``start`` of their own is trained before, into
    ``out/start``; ``first`` fits the frozen encoder, which they fine-tune, into ``out/frozen``. Where the fit or the
    baseline is significantly better on the labels, it is used; and the fit where class shares are certainly uneven,
    which fine-tuning does not know. Runs that have ended are not repeated."""
    if recipe.first_classifier != RANDOM:
        refuse_random_features(recipe)
    run = Run.at(out, recipe, options.resume)
    options = replace(options, resume=True)  # of the runs below it
    ended = run.results()
    images = None if ended else read_photos(recipe)
    if ended is not None:
        check = Check.of(ended)
    elif images is not None and check.all_in_turn:
        check = cross_check(images.counts())  # of the photos that could be read, so that no fold is without labels
    with run.begin(recipe):
        pass  # its config.json claims the folder before anything lies below it
    methods = {("" if one is recipe else name): one for name, one in methods_to_compare(recipe, frozen=False).items()}
    folds = [f", fold {fold + 1} of {check.folds}" for fold in range(check.folds)] if check.all_in_turn else []
    runs = [(one, fold) for one in methods.values() for fold in (*folds, "")]
    numbered = _numbered(runs, options, "" if start is None else "2 of 2: ")
    try:
        if start is not None and ended is None:
            after = sum(map(_images, (one for one, _ in runs))) * start.steps / _images(start)
            told = replace(options, part="1 of 2: learning features", after=after)
            train_as(told, start, out / START_FOLDER, images)
        fits = [] if first is None else [first(out=out / FROZEN)]
        results = [_trained(one, out, check, images, numbered, folder) for folder, one in methods.items()]
    except KeyboardInterrupt:  # between two runs, or for the second time
        raise Interrupted(f"Stopped. Resume with: {options.go_on}", signal.SIGINT) from None
    before = [replace(one.chosen, name=FROZEN, folder=FROZEN) for one in fits]
    trained = [
        Candidate(method_of(one), _confusion(result), frozenset(result["check"].get("right", ())), folder=folder)
        for (folder, one), result in zip(methods.items(), results, strict=True)
    ]
    candidates = (*trained[:-1], *before, trained[-1])
    uneven = any(one.results.get("shares", {}).get("weight") for one in fits)
    chosen = before[0] if uneven else choose(candidates, check.folds > 0)
    hand_out(out, chosen.folder)
    return Outcome(candidates, check, chosen, results[-1], uneven=uneven)


def fold_name(recipe: Recipe, fold: int) -> str:
    """The folder of a fold, after the method. An algorithm may be a path, which must not lead out."""
    return re.sub(r"[^\w+.-]+", "-", f"{method_of(recipe)}-fold{fold}".lower()).strip("-")


def _numbered(runs: Sequence[tuple[Recipe, str]], options: RunOptions, before: str) -> Iterator[RunOptions]:
    """The options of each run: its number for the progress line, and what comes after it, in its steps."""
    for number, (one, fold) in enumerate(runs, 1):
        part = f"{before}run {number} of {len(runs)} ({method_of(one)}{fold})"
        left = sum(_images(later) for later, _ in runs[number:])
        yield replace(options, part=part, after=left * one.steps / _images(one))


def _images(recipe: Recipe) -> int:
    """Views of images in a run, by which runs of several methods share the remaining time."""
    unlabeled = 0 if recipe.algorithm.name == SUPERVISED else 2 * recipe.unlabeled_batch
    return recipe.steps * max(recipe.labeled_batch + unlabeled, 1)


def _trained(
    recipe: Recipe, out: Path, check: Check, images: ImageSet | None, numbered: Iterator[RunOptions], folder: str
) -> dict[str, Any]:
    """Train the folds of a recipe, then the recipe itself; returns its results."""
    parts = []
    for fold in range(check.folds) if check.all_in_turn else ():
        below = out / CHECKS / fold_name(recipe, fold)
        part = with_fold(recipe, check.folds, fold)
        parts.append(train_as(replace(next(numbered), end=_end_of_fold), part, below, images, begin))
        if images is not None:
            _check_labels(parts[-1], part, images, out)
        # The models of folds are not needed, and may be large.
        (below / "model.safetensors").unlink(missing_ok=True)
        shutil.rmtree(below / "checkpoint", ignore_errors=True)
    return train_as(replace(next(numbered), end=partial(_end, check, parts)), recipe, out / folder, images, begin)


def read_photos(recipe: Recipe) -> ImageSet:
    """Read all photos once, for all runs."""
    given = recipe.protocol.name == "given"
    protocol = GivenLabels(**recipe.protocol.settings) if given else NoLabels()
    with ProgressLine(f"{recipe.name}, reading:", 0, 0, unit="image") as line:

        def show(done: int, total: int) -> None:
            line.steps = total
            line.show(done, {"losses": {}})

        return protocol.read(recipe.data, recipe.image_size, recipe.stream, progress=show)


def _check_labels(results: dict[str, Any], recipe: Recipe, images: ImageSet, out: Path) -> None:
    """Raise where a fold that ended before a stop was trained with other labels."""
    bad = set(results.get("skipped", ()))
    known = task_of(recipe, images).labeled
    read = known.select([place for place, name in enumerate(known.ids) if name not in bad])
    # Unreadable files that are streamed are found only during training, so they are counted in its labels.
    if results["labels"] not in (read.counts(), known.counts()):
        raise RunError(f"the labels have changed since {out} was started. Start another run: --out.")


def _confusion(results: dict[str, Any]) -> Cells:
    return Cells.from_json(results["confusion"], len(results["recall"]))


def _end_of_fold(predict: Predict, task: Task) -> Ending:
    """With the labels that were predicted right, to compare models label by label."""
    found, how = predict(task.test), "the averaged weights after the last step, on the labels of the fold"
    more = {"check": {"kind": "fold", "right": _right(found)}}
    return Ending(found.confusion, how, found.to_csv(), frozenset(found.skipped), more)


def _right(found: Evaluation) -> list[str]:
    pairs = zip(found.images.ids, found.label.tolist(), found.images.truth.tolist(), strict=True)
    return [name for name, label, truth in pairs if label == truth]


def _end(check: Check, parts: list[dict[str, Any]], predict: Predict, task: Task) -> Ending:
    """Predictions of every photo; measured on labels that were not used for training, if there are any."""
    labeled = task.labeled
    hidden = replace(labeled.without_labels(), truth=torch.full_like(labeled.truth, UNLABELED))
    found = predict(replace(task, labeled=hidden).every_image())
    predicted = torch.bincount(found.label, minlength=labeled.num_classes).tolist()
    if parts:
        confusion = Cells.sum([_confusion(part) for part in parts])
        right = sorted(name for part in parts for name in part["check"]["right"])
    else:
        measured = predict(task.test)
        confusion, right = measured.confusion, _right(measured) if check.folds else []
    checked = {**check.facts(), "predicted": predicted, "right": right}
    more = {"check": checked, "learned_from": list(task.labeled.ids)}
    return Ending(confusion, check.how, found.to_csv(), frozenset(found.skipped), more)


def train_start(photos: Photos, recipe: Recipe, out: Path, options: RunOptions) -> dict[str, Any]:
    """Train a start into ``out``; returns its results."""
    ended = Run.at(out, recipe, options.resume).results()
    images = None if ended else read_photos(recipe)
    return train_as(replace(options, end=partial(_end_of_start, check_for(photos))), recipe, out, images)


def _end_of_start(check: Check, predict: Predict, task: Task) -> Ending:
    found = on_the_test_set(predict, task)
    if not check.folds:
        return found
    more = {"check": {**check.facts(), "kind": "held-out", "labels": len(task.test)}}
    return replace(found, evaluated="the averaged weights after the last step, on held-out labels", more=more)

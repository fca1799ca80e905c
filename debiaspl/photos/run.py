"""The runs of one training on photos: folds for the check, models to compare with, and the run itself."""

import re
import shutil
import signal
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from debiaspl.data import UNLABELED, GivenLabels, ImageSet, NoLabels, Task
from debiaspl.deploy.chosen import hand_out
from debiaspl.photos.check import Check, cross_check
from debiaspl.photos.choose import graph_labels, supervised
from debiaspl.photos.evidence import DEBIASPL, GRAPH, SUPERVISED, TrainedCandidate, choose_by_evidence
from debiaspl.training import Choice, Interrupted, Recipe, Run, RunError
from debiaspl.training.evaluate import Evaluation
from debiaspl.training.first_classifier import refuse_random_features
from debiaspl.training.frozen import FEATURES, is_frozen
from debiaspl.training.log import ProgressLine
from debiaspl.training.loop import RunOptions, train_as
from debiaspl.training.results import Ending, Predict, on_the_test_set

BASELINE, CHECKS, START = SUPERVISED, "check", "start"
"""Folders below the run's own."""
NAMES = {"supervised": SUPERVISED, "graph": GRAPH, "fixmatch": "FixMatch"}
"""Printed names, by algorithm; others are printed as they are."""


@dataclass(frozen=True)
class Outcome:
    """What the runs measured."""

    candidates: tuple[TrainedCandidate, ...]
    """The models to compare with, and, last, the run itself."""
    check: Check
    chosen: TrainedCandidate
    """The one that is used."""

    @property
    def semi(self) -> dict[str, Any]:
        """Results of the run itself."""
        return self.candidates[-1].results

    @property
    def baseline(self) -> TrainedCandidate | None:
        """The supervised model; None where the run itself is supervised."""
        return self.candidates[0] if len(self.candidates) > 1 else None

    @property
    def frozen(self) -> bool:
        """Whether the features are those of a frozen encoder, which is what was measured on many folders."""
        return any(one.name == GRAPH for one in self.candidates)


def train_photos(
    recipe: Recipe,
    check: Check,
    out: Path,
    resume: bool = False,
    device: str | None = None,
    workers: int = 2,
    go_on: str = "train_photos(..., resume=True)",
    eager: bool = False,
    start: Recipe | None = None,
) -> Outcome:
    """Train the recipe into ``out``, the supervised baseline into ``out/supervised``, with a frozen encoder the labels
    of the graph into ``out/graph`` and, where labels are cross-checked, a run for each fold into ``out/check``. Runs
    that have ended are not repeated. Where they begin with a ``start`` of their own, that is trained first, into
    ``out/start``. Where another than the run itself is significantly better on the labels, it is used instead."""
    refuse_random_features(recipe)
    recipe = with_check(recipe, check)
    run = Run.at(out, recipe, resume)
    ended = run.results()
    images = None if ended else read_photos(recipe)
    if check.all_in_turn:
        check = _with_what_was_read(check, images, ended)
    with run.begin(recipe):
        pass  # its config.json claims the folder before anything lies below it
    features = out.resolve().parent / FEATURES
    options = RunOptions(True, device, workers, eager=eager, go_on=go_on, features=features)
    methods = candidates(recipe)
    numbered = _Numbered(count_runs(recipe, check), "" if start is None else "2 of 2: ")
    try:
        if start is not None and ended is None:
            train_as(replace(options, part="1 of 2: learning features"), start, out / START, images)
        results = [_trained(each, out, options, check, images, numbered, folder) for folder, each in methods]
    except KeyboardInterrupt:  # between two runs, or for the second time
        raise Interrupted(f"Stopped. Resume with: {go_on}", signal.SIGINT) from None
    found = tuple(
        TrainedCandidate(name_of(each), one, folder) for (folder, each), one in zip(methods, results, strict=True)
    )
    chosen = choose_by_evidence(found, check.folds > 0)
    hand_out(out, chosen.folder)
    return Outcome(found, check, chosen)


def candidates(recipe: Recipe) -> list[tuple[str, Recipe]]:
    """What is trained, with the folder below the run's own: models to compare with, and, last, the run itself."""
    if recipe.algorithm.name == "supervised":
        return [("", recipe)]
    others = [(BASELINE, supervised(recipe))]
    if is_frozen(recipe) and recipe.algorithm.name != "graph":
        others.append((GRAPH, graph_labels(recipe)))
    return [*others, ("", recipe)]


def name_of(recipe: Recipe) -> str:
    """The printed name: DebiasPL for any algorithm with the Debiaser."""
    if recipe.correction.name == "debiaser":
        return DEBIASPL
    name = NAMES.get(recipe.algorithm.name, recipe.algorithm.name)
    return name if recipe.correction.name == "none" else f"{name}, {recipe.correction.name}"


def fold_name(recipe: Recipe, fold: int) -> str:
    """The folder of a fold, after the method as it is printed. An algorithm may be a path, which must not lead out."""
    return re.sub(r"[^\w+.-]+", "-", f"{name_of(recipe)}-fold{fold}".lower()).strip("-")


def count_runs(recipe: Recipe, check: Check) -> int:
    """The number of runs: a final one and those of the folds, for every candidate."""
    return len(candidates(recipe)) * (1 + (check.folds if check.all_in_turn else 0))


class _Numbered:
    """Counts the runs for the progress line."""

    def __init__(self, total: int, before: str = "") -> None:
        self.total, self.before, self.begun = total, before, 0

    def next(self, recipe: Recipe, fold: str = "") -> str:
        self.begun += 1
        method = name_of(recipe)
        told = f"run {self.begun} of {self.total} ({method}{fold})" if self.total > 1 else ""
        return f"{self.before}{told or method}" if self.before else told


def _trained(
    recipe: Recipe,
    out: Path,
    options: RunOptions,
    check: Check,
    images: ImageSet | None,
    numbered: _Numbered,
    folder: str,
) -> dict[str, Any]:
    """Train the folds of a recipe, then the recipe itself; returns its results."""
    parts = []
    for fold in range(check.folds) if check.all_in_turn else ():
        below = out / CHECKS / fold_name(recipe, fold)
        part = _with_fold(recipe, check.folds, fold)
        told = replace(options, part=numbered.next(recipe, f", fold {fold + 1} of {check.folds}"), end=_end_of_fold)
        parts.append(train_as(told, part, below, images))
        _check_labels(parts[-1], part, images, out)
        # The models of folds are not needed, and may be large.
        (below / "model.safetensors").unlink(missing_ok=True)
        shutil.rmtree(below / "checkpoint", ignore_errors=True)
    last = replace(options, end=partial(_end, check, parts), part=numbered.next(recipe))
    return train_as(last, recipe, out / folder, images)


def read_photos(recipe: Recipe) -> ImageSet:
    """Read all photos once, for all runs."""
    line: list[ProgressLine] = []

    def show(done: int, total: int) -> None:
        line[:] = line or [ProgressLine(f"{recipe.name}, reading:", 0, total, unit="image")]
        line[0].show(done, {"losses": {}})

    try:
        return _protocol(recipe).read(recipe.data, recipe.image_size, recipe.stream, progress=show)
    finally:
        for shown in line:
            shown.__exit__()


def _protocol(recipe: Recipe) -> GivenLabels | NoLabels:
    """How these photos are read: with given labels, or without labels."""
    return NoLabels() if recipe.protocol.name == "no-labels" else GivenLabels(**recipe.protocol.settings)


def _with_what_was_read(check: Check, images: ImageSet | None, ended: dict[str, Any] | None) -> Check:
    """The check for the photos that could be read, so that no fold is without labels."""
    if images is not None:
        return cross_check(images.counts(), max(check.folds, 2))
    told = (ended or {}).get("check", {})
    return replace(check, folds=told.get("folds", check.folds), labels=told.get("labels", check.labels))


def _check_labels(results: dict[str, Any], recipe: Recipe, images: ImageSet | None, out: Path) -> None:
    """Raise where a fold that ended before a stop was trained with other labels."""
    if images is None:
        return
    bad = set(results.get("skipped", ()))
    known = Task.of_given(images, GivenLabels(**recipe.protocol.settings), recipe.seed, recipe.validation).labeled
    read = known.select([place for place, name in enumerate(known.ids) if name not in bad])
    # Unreadable files that are streamed are found only during training, so they are counted in its labels.
    if results["labels"] not in (read.counts(), known.counts()):
        raise RunError(
            f"the labels have changed since {out} was started, and a part of it has ended with the old ones. Start "
            "another run: --out."
        )


def with_check(recipe: Recipe, check: Check) -> Recipe:
    """The recipe of the run itself, with the labels that it holds out."""
    return recipe if check.all_in_turn else _with_fold(recipe, check.folds, 0)


def _with_fold(recipe: Recipe, folds: int, fold: int) -> Recipe:
    if not folds:
        return recipe
    settings = {**recipe.protocol.settings, "folds": folds, "fold": fold}
    return replace(recipe, protocol=Choice(recipe.protocol.name, settings))


def _end_of_fold(predict: Predict, task: Task) -> Ending:
    """The usual results, and which labels were predicted right, to compare models label by label."""
    found, usual = predict(task.test), on_the_test_set(predict, task)
    return replace(usual, more={**usual.more, "check": {"kind": "fold", "right": _right(found)}})


def _right(found: Evaluation) -> list[str]:
    pairs = zip(found.images.ids, found.label.tolist(), found.images.truth.tolist(), strict=True)
    return [name for name, label, truth in pairs if label == truth]


def _end(check: Check, parts: list[dict[str, Any]], predict: Predict, task: Task) -> Ending:
    """Predictions of every photo; measured on labels that were not used for training, if there are any."""
    labeled = task.labeled
    hidden = replace(labeled.without_labels(), truth=torch.full_like(labeled.truth, UNLABELED))
    found = predict(replace(task, labeled=hidden).every_image())
    predicted = torch.bincount(found.label, minlength=labeled.num_classes).tolist()
    right: list[str] | None = None
    if parts:
        confusion = torch.tensor([part["confusion"] for part in parts]).sum(0).tolist()
        how = f"cross-checked: each label was predicted by one of {check.folds} runs that did not learn from it"
        kept = [part.get("check", {}).get("right") for part in parts]  # earlier versions did not keep them
        right = None if None in kept else sorted(name for names in kept for name in names)
    elif check.folds:
        held_out = predict(task.test)
        confusion, right = held_out.confusion, _right(held_out)
        how = "the model of this run, on labels that were held out from it"
    else:
        confusion = predict(task.test).confusion
        how = "the labels it was trained with, as there are no others: this says nothing about other photos"
    kind = "none" if not check.folds else "cross-check" if parts else "held-out"
    told: dict[str, Any] = {"kind": kind, "folds": check.folds, "labels": check.labels, "predicted": predicted}
    more = {"check": told if right is None else {**told, "right": right}, "learned_from": list(task.labeled.ids)}
    return Ending(confusion, how, found.to_csv(), frozenset(found.skipped), more)

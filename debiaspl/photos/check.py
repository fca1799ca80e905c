"""How a run on photos is checked with labels it did not learn from, what was measured, and what is said of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from debiaspl._printable import printable
from debiaspl.data.task import fold_of
from debiaspl.data.text import shown
from debiaspl.deploy import SavedModel
from debiaspl.deploy.shares import on_all_photos, percent, unlike_labels
from debiaspl.features.crosscheck import GRAPH, SUPERVISED, Candidate, paired
from debiaspl.photos.survey import Photos
from debiaspl.training import Choice, Recipe
from debiaspl.training.method import method_of, with_method

FOLDS = 3
"""Parts that labels are cross-checked in,"""
HELD_OUT = 5
"""or one label in five is held out, where there are enough."""
ENOUGH = 10
"""There are enough if the rarest class has this many labels"""
ENOUGH_IN_ALL = 50
"""and if this many can be held out."""


@dataclass(frozen=True)
class Check:
    """Which labels check a run that did not learn from them."""

    folds: int
    """Parts that the labels are split into; 0: too few labels."""
    all_in_turn: bool
    """Whether each part is held out once, by a run of its own; else one part, by the run itself."""
    labels: int

    @classmethod
    def of(cls, results: Mapping[str, Any]) -> "Check":
        """That of a run that has ended."""
        found = results["check"]
        return cls(found["folds"], found["kind"] != "held-out", found["labels"])

    def facts(self) -> dict[str, Any]:
        """For the results of the run."""
        kind = "none" if not self.folds else "cross-check" if self.all_in_turn else "held-out"
        return {"kind": kind, "folds": self.folds, "labels": self.labels}

    @property
    def how(self) -> str:
        """What was measured, for the results of the run and for the user."""
        if not self.folds:
            return "measured on the labels it was trained with: this says nothing about other photos"
        if not self.all_in_turn:
            return f"measured on {self.labels} labels that were held out"
        how = f"each of {self.labels} labels was predicted by one of {self.folds} models that did not learn from it"
        return f"{how}. These had fewer labels than the final model, which is usually better"

    def words(self) -> str:
        """A sentence for the user, printed before training."""
        if not self.folds:
            return "Every class has one label only, so nothing can be checked. Two labels of each class are enough."
        if self.all_in_turn:
            return f"{self.labels:,} labels are cross-checked in {self.folds} folds."
        return f"{self.labels:,} labels are held out to check with."


def check_for(photos: Photos, seed: int = 0) -> Check:
    """Held-out labels where there are enough, else cross-checked ones."""
    counts = photos.counts
    if counts and min(counts) >= ENOUGH and sum(counts) >= HELD_OUT * ENOUGH_IN_ALL:
        return Check(HELD_OUT, False, int((fold_of(photos.labels, HELD_OUT, seed) == 0).sum()))
    return cross_check(counts)


def cross_check(counts: Sequence[int]) -> Check:
    """Cross-check all labels of classes with two or more, in as many folds as have a label."""
    labels = sum(count for count in counts if count > 1)
    return Check(min(FOLDS, labels), True, labels)


def with_fold(recipe: Recipe, folds: int, fold: int) -> Recipe:
    """The recipe without the labels of this fold."""
    settings = {**recipe.protocol.settings, "folds": folds, "fold": fold}
    return replace(recipe, protocol=Choice(recipe.protocol.name, settings))


@dataclass(frozen=True)
class Outcome:
    """What was measured."""

    candidates: tuple[Candidate, ...]
    """The models to compare with, and, last, the run itself."""
    check: Check
    chosen: Candidate
    results: dict[str, Any]
    model: SavedModel | None = None
    """The model of the folder, where it is in memory."""
    uneven: bool = False
    """Whether a model was chosen because it knows that class shares are uneven."""


def methods_to_compare(recipe: Recipe, frozen: bool) -> dict[str, Recipe]:
    """What is trained, by the names of methods: models to compare with, and, last, the recipe itself."""
    recipes: dict[str, Recipe] = {}
    if recipe.algorithm.name != SUPERVISED:
        recipes[SUPERVISED] = with_method(recipe, SUPERVISED)
        if frozen and recipe.algorithm.name != GRAPH:
            recipes[GRAPH] = with_method(recipe, GRAPH).changed(first_classifier="graph")
    return {**recipes, method_of(recipe): recipe}


def caption(outcome: Outcome) -> str:
    """What was measured; labels with other class shares than the photos do not measure the accuracy on these."""
    results, how = outcome.results, outcome.check.how
    shares, predicted = results.get("shares", {}).get("estimate", ()), results["check"].get("predicted", [])
    more = on_all_photos(results["labels"], predicted, outcome.chosen.confusion.recall, shares)
    return f"{how[0].upper()}{how[1:]}. {more if outcome.check.folds else ''}".rstrip()


def about_shares(results: Mapping[str, Any], classes: Sequence[str]) -> list[str]:
    """The estimated class shares of the photos without a label, and, in a line, where the labels have others."""
    shares = results.get("shares")
    if not shares or not results.get("unlabeled"):
        return []
    names = [printable(name) for name in classes]
    parts = zip(names, shares["estimate"], shares["low"], shares["high"], strict=True)
    rows = sorted(parts, key=lambda part: -part[1])
    told = [f"{name} {percent(share)} ({percent(low)} to {percent(high)})" for name, share, low, high in rows]
    lines = [f"Estimated shares of the photos without a label, with 95 % intervals, in %: {shown(told, limit=12)}."]
    if where := unlike_labels(shares, names):
        lines.append(f"They differ from those of your labels: {where}.")
    return lines


def verdict(outcome: Outcome, unlabeled: int = 0) -> str:
    """Whether the unlabeled photos have helped: yes, no, or not significant with these labels."""
    baseline, run = outcome.candidates[0], outcome.candidates[-1]
    if baseline is run or baseline.name != SUPERVISED:  # but the fit that a supervised run fine-tunes
        return f"{'As requested,' if unlabeled else 'Every photo has a label, so'} this is a supervised model."
    if not outcome.check.folds:
        return "It is not known whether the unlabeled photos help: no class has a second label to check with."
    more, less, significant = paired(run, baseline)
    numbers = f"{run.name} has {run.right} of {run.checked} labels right, the supervised model {baseline.right}"
    numbers += f" ({more} only with {run.name}, {less} only with the latter)"
    if significant:
        return f"The unlabeled photos {'help' if more > less else 'do not help here'}: {numbers}."
    measured = outcome.candidates[1].name == GRAPH  # with a frozen encoder, on many folders
    usual = " On average over the sets of photos that we measured they do." if measured else ""
    return f"These labels do not show whether the unlabeled photos help: {numbers}.{usual}"


def handed_out(outcome: Outcome, place: Path) -> str:
    """Which model is used from now on, and why."""
    chosen, run = outcome.chosen, outcome.candidates[-1]
    if chosen is run:
        return f"predict, next and export use this model: {run.name}."
    right = f"{chosen.right} of {chosen.checked} right instead of {run.right}"
    why = f"it is significantly better on these labels than {run.name}: {right}"
    if outcome.uneven:
        why = f"some classes certainly have more photos than others, which {run.name} does not know"
    anyway = f" To use {run.name} anyway, remove {place / 'chosen.json'}." if chosen.folder else ""
    used = f"predict, next and export use the model {chosen.name}, in {place / chosen.folder}"
    return f"{used}, because {why}.{anyway}"

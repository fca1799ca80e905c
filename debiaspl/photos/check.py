"""How a run on photos is checked with labels it did not learn from, what was measured, and what is said of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debiaspl._measures import unlike
from debiaspl._printable import printable
from debiaspl.data.task import fold_of
from debiaspl.data.text import shown
from debiaspl.deploy import SavedModel
from debiaspl.deploy.shares import percent, unlike_labels
from debiaspl.features.crosscheck import GRAPH, SUPERVISED, Candidate, paired
from debiaspl.photos.survey import Photos
from debiaspl.training import Recipe
from debiaspl.training.method import method_of, with_method

HELD_OUT = 5
"""One label in five is held out, where there are enough."""
TRAINED_WITH = "the labels it was trained with, as there are no others: this says nothing about other photos"
ENOUGH = 10
"""There are enough if the rarest class has this many labels"""
ENOUGH_IN_ALL = 50
"""and if this many can be held out."""


@dataclass(frozen=True)
class Check:
    """How a run on photos is checked with labels it did not learn from."""

    folds: int
    """Parts that the labels are split into; 0: too few labels."""
    all_in_turn: bool
    """Whether each part is held out once, by a run of its own; else one part, by the run itself."""
    labels: int

    def words(self) -> str:
        """A sentence for the user, printed before training."""
        if not self.folds:
            return "Every class has one label only, so nothing can be checked. Two labels of each class are enough."
        if self.all_in_turn:
            return f"{self.labels} labels are cross-checked in {self.folds} folds."
        return f"{self.labels} labels are held out to check with."


def check_for(photos: Photos, folds: int = 3, seed: int = 0) -> Check:
    """Held-out labels where there are enough, else cross-checked ones."""
    counts = photos.counts
    if not counts:
        return Check(0, False, 0)
    if min(counts) >= ENOUGH and sum(counts) >= HELD_OUT * ENOUGH_IN_ALL:
        return Check(HELD_OUT, False, int((fold_of(photos.labels, HELD_OUT, seed) == 0).sum()))
    return cross_check(counts, folds)


def cross_check(counts: Sequence[int], folds: int = 3) -> Check:
    """Cross-check all labels of classes with two or more, in as many folds as have a label."""
    again = sum(count for count in counts if count > 1)
    return Check(min(folds, again), True, again)


@dataclass(frozen=True)
class Outcome:
    """What was measured."""

    candidates: tuple[Candidate, ...]
    """The models to compare with, and, last, the run itself."""
    check: Check
    chosen: Candidate
    results: dict[str, Any]
    model: SavedModel | None = None
    uneven: bool = False
    """Whether a model was chosen because it knows that class shares are uneven."""

    @property
    def baseline(self) -> Candidate | None:
        """The supervised model; None where the run itself is supervised."""
        return self.candidates[0] if len(self.candidates) > 1 else None

    @property
    def frozen(self) -> bool:
        """Whether the features are those of a frozen encoder, which is what was measured on many folders."""
        return any(one.name == GRAPH for one in self.candidates)


def methods_to_compare(recipe: Recipe, frozen: bool) -> dict[str, Recipe]:
    """What is trained, by the names of methods: models to compare with, and, last, the recipe itself."""
    recipes: dict[str, Recipe] = {}
    if recipe.algorithm.name != SUPERVISED:
        recipes[SUPERVISED] = with_method(recipe, SUPERVISED)
        if frozen and recipe.algorithm.name != GRAPH:
            recipes[GRAPH] = with_method(recipe, GRAPH).changed(first_classifier="graph")
    return {**recipes, method_of(recipe): recipe}


def caption(outcome: Outcome) -> str:
    check = outcome.check
    if not check.folds:
        return "Measured on the labels it was trained with: this says nothing about other photos."
    if not check.all_in_turn:
        return f"On {check.labels} labels that were held out.{_balanced(outcome)}"
    how = f"Each of {check.labels} labels was predicted by one of {check.folds} models that did not learn from it."
    return f"{how} These had fewer labels than the final model, which is usually better.{_balanced(outcome)}"


def _balanced(outcome: Outcome) -> str:
    """A note that labels with other class shares than the photos do not measure the accuracy on these."""
    labels, predicted = outcome.results.get("labels", []), outcome.results.get("check", {}).get("predicted", [])
    shares = outcome.results.get("shares", {}).get("estimate", predicted)
    if not unlike(labels, [share * sum(predicted) / sum(shares) for share in shares]):
        return ""
    note = " The labels have other class shares than the photos seem to have"
    if "shares" not in outcome.results:  # what a model predicts may be one class alone
        return f"{note}: on all photos, the share can be another."
    known = [pair for pair in zip(shares, outcome.chosen.recall, strict=True) if pair[1] is not None]
    right = sum(share * recall for share, recall in known if recall is not None) / sum(share for share, _ in known)
    return f"{note}. Weighed by these, about {100 * right:.0f} % of all photos are right."


def about_shares(results: Mapping[str, Any], classes: Sequence[str]) -> list[str]:
    """The estimated class shares of the photos without a label, and, in a line, where the labels have others."""
    shares = results.get("shares")
    if not shares or not results.get("unlabeled"):
        return []
    names = [printable(name) for name in classes]
    parts = zip(names, *(shares[key] for key in ("estimate", "low", "high")), strict=True)
    order = sorted(parts, key=lambda part: -part[1])
    told = [f"{name} {percent(share)} ({percent(low)} to {percent(high)})" for name, share, low, high in order]
    lines = [f"Estimated shares of the photos without a label, with 95 % intervals, in %: {shown(told, limit=12)}."]
    if where := unlike_labels(shares, names):
        lines.append(f"They differ from those of your labels: {where}.")
    return lines


def verdict(outcome: Outcome, unlabeled: int = 0) -> str:
    """Whether the unlabeled photos have helped: yes, no, or not significant with these labels."""
    if outcome.baseline is None and not unlabeled:
        return "Every photo has a label, so this is a supervised model."
    if outcome.baseline is None:
        return "This is a supervised model, as requested: it has learned from the labels only."
    if not outcome.check.folds:
        return "It is not known whether the unlabeled photos help: no class has a second label to check with."
    run, baseline = outcome.candidates[-1], outcome.baseline
    more, less, significant = paired(run, baseline)
    numbers = f"{run.name} has {run.right} of {run.checked} labels right, the supervised model {baseline.right}"
    if run.right == baseline.right:
        numbers = f"{run.name} and the supervised model both have {run.right} of {run.checked} labels right"
    are = "label is" if more == 1 else "labels are"
    apart = f"{more} {are} right only with {run.name}, {less} only with the supervised model"
    if not significant:
        tested = f"; the difference is not significant ({apart})" if more + less else ", the same ones"
        usual = " On average over the sets of photos that we measured they do." if outcome.frozen else ""
        return f"These labels do not show whether the unlabeled photos help: {numbers}{tested}.{usual}"
    return f"The unlabeled photos {'help' if more > less else 'do not help here'}: {numbers} ({apart})."


def handed_out(outcome: Outcome, place: Path) -> str:
    """Which model is used from now on, and why."""
    chosen, run = outcome.chosen, outcome.candidates[-1]
    if chosen is run:
        return f"predict, next and export use this model: {run.name}."
    right = f"{chosen.right} of {chosen.checked} right instead of {run.right}"
    why = f"because it is significantly better on these labels than {run.name}: {right}"
    if outcome.uneven:
        why = f"because some classes certainly have more photos than others, which {run.name} does not know"
    if not chosen.folder:
        return f"The model of the run is {chosen.name}, {why}. Its predictions are in {place}/predictions.csv."
    return (
        f"predict, next and export use the model {chosen.name}, in {place / chosen.folder}, {why}. Its predictions are "
        f"in {place / chosen.folder / 'predictions.csv'}. To use {run.name} anyway, remove {place / 'chosen.json'}."
    )

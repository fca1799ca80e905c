"""How a run on photos is checked with labels it did not learn from, and what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from debiaspl.data.task import fold_of
from debiaspl.features.crosscheck import GRAPH, SUPERVISED, Candidate
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
    """Labels that are checked."""

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
    """The one that is used."""
    results: dict[str, Any]
    """Of the run itself."""

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

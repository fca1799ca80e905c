"""How a run on photos is checked with labels it did not learn from."""

from collections.abc import Sequence
from dataclasses import dataclass

from debiaspl.data.given import fold_of
from debiaspl.photos.survey import Photos

HELD_OUT = 5
"""One label in five is held out, where there are enough."""
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

"""How imbalanced predictions are: all of them, and those above a confidence."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

THRESHOLDS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)


@dataclass(frozen=True, eq=False)
class Shares:
    """Predictions per class, and what they come to."""

    counts: NDArray[np.int64]

    @property
    def imbalance_ratio(self) -> float:
        """Largest count over smallest, where a class that was never predicted counts as one, as in a run's results."""
        return float(self.counts.max() / max(int(self.counts.min()), 1))

    @property
    def effective_classes(self) -> float:
        """exp(entropy): how many classes, evenly used, would be as diverse as these; 0 of no predictions."""
        total = int(self.counts.sum())
        if total == 0:
            return 0.0
        used = self.counts[self.counts > 0] / total
        return float(np.exp(-(used * np.log(used)).sum()))

    @property
    def never(self) -> list[int]:
        """Classes without a prediction."""
        return [int(number) for number in np.flatnonzero(self.counts == 0)]

    @property
    def times_even(self) -> NDArray[np.float64]:
        """Each class's predictions over an even share."""
        return self.counts.astype(np.float64) * (len(self.counts) / max(int(self.counts.sum()), 1))


def shares_of(label: NDArray[np.int64], classes: int) -> Shares:
    return Shares(np.bincount(label, minlength=classes))


@dataclass(frozen=True, eq=False)
class Above:
    """What is left at and above a confidence."""

    threshold: float
    shares: Shares
    kept: int
    kept_share: float
    accuracy: float | None
    """Of those kept whose truth is known; None if there are none."""

    def to_json(self) -> dict[str, Any]:
        """The numbers, by name; None where nothing is kept that would have them.

        The imbalance needs as many as there are classes: of fewer, some class is empty however even the rest is, and
        empty classes count as one, so it would fall with what is kept.
        """
        return {
            "threshold": self.threshold,
            "kept": self.kept,
            "kept_share": self.kept_share,
            "largest_times_even": float(self.shares.times_even.max()) if self.kept else None,
            "imbalance_ratio": self.shares.imbalance_ratio if self.kept >= len(self.shares.counts) else None,
            "effective_classes": self.shares.effective_classes if self.kept else None,
            "never_predicted": len(self.shares.never),
            "accuracy": self.accuracy,
        }


def above_thresholds(
    label: NDArray[np.int64], confidence: NDArray[np.float64], classes: int, truth: NDArray[np.int64] | None
) -> list[Above]:
    """Raise the threshold and look again: the paper finds that the kept labels are then more imbalanced, not less."""
    rows = []
    for threshold in THRESHOLDS:
        keep = confidence >= threshold
        known = np.zeros(0, bool) if truth is None else (label == truth)[keep & (truth >= 0)]
        accuracy = float(known.mean()) if len(known) else None
        kept = int(keep.sum())
        rows.append(Above(threshold, shares_of(label[keep], classes), kept, kept / len(label), accuracy))
    return rows

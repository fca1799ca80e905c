"""How imbalanced predictions are, in all and above a confidence threshold; and whether a confidence can be trusted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl._measures import almost_none, distance, ratio, reference_name, wilson

THRESHOLDS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
BINS = 10


@dataclass(frozen=True, eq=False)
class Shares:
    """Predictions per class, and measures of their imbalance."""

    counts: NDArray[np.int64]
    true: list[int] | None = None
    """True counts of the classes, where the class of every image is known."""

    @property
    def distance(self) -> float | None:
        """Share of the predictions that would have to change class to match the true shares, or even shares where those
        are not known (total variation distance); None without predictions."""
        return distance(self.counts.tolist(), self.true) if self.counts.any() else None

    @property
    def almost_none(self) -> int:
        """Classes with less than a tenth of the predictions that those shares would give them."""
        return almost_none(self.counts.tolist(), self.true) if self.counts.any() else len(self.counts)

    @property
    def reference(self) -> str:
        """``true shares`` or ``even shares``."""
        return reference_name(self.true)

    def to_json(self) -> dict[str, Any]:
        """How far from the shares they should have."""
        return {
            "distance": self.distance,
            "distance_from": self.reference,
            "almost_none": self.almost_none,
            "imbalance_ratio": ratio(self.counts.tolist()),
            "effective_classes": self.effective_classes if self.counts.any() else None,
        }

    @property
    def effective_classes(self) -> float:
        """exp(entropy): the number of evenly used classes that would be as diverse; 0 without predictions."""
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


def shares_of(label: NDArray[np.int64], classes: int, truth: NDArray[np.int64] | None = None) -> Shares:
    """The shares of these labels. ``truth`` are the true classes of all images, -1 where not known."""
    known = truth is not None and len(truth) > 0 and bool((truth >= 0).all())
    true = np.bincount(truth, minlength=classes).tolist() if known and truth is not None else None
    return Shares(np.bincount(label, minlength=classes), true)


@dataclass(frozen=True, eq=False)
class Above:
    """Predictions at or above a confidence threshold."""

    threshold: float
    shares: Shares
    kept: int
    of: int
    accuracy: float | None
    """Accuracy of kept predictions whose true class is known; None if there are none."""

    def to_json(self) -> dict[str, Any]:
        """The numbers, by name; None where nothing is kept that would have them."""
        return {
            "threshold": self.threshold,
            "kept": self.kept,
            "kept_share": self.kept / self.of,
            "largest_times_even": float(self.shares.times_even.max()) if self.kept else None,
            **self.shares.to_json(),
            "never_predicted": len(self.shares.never),
            "accuracy": self.accuracy,
        }


def above_thresholds(
    label: NDArray[np.int64], confidence: NDArray[np.float64], classes: int, truth: NDArray[np.int64] | None
) -> list[Above]:
    """The kept predictions for several thresholds. The paper finds them more imbalanced at higher thresholds."""
    rows = []
    for threshold in THRESHOLDS:
        keep = confidence >= threshold
        known = np.zeros(0, bool) if truth is None else (label == truth)[keep & (truth >= 0)]
        accuracy = float(known.mean()) if len(known) else None
        rows.append(Above(threshold, shares_of(label[keep], classes, truth), int(keep.sum()), len(label), accuracy))
    return rows


@dataclass(frozen=True)
class Bin:
    """Predictions of similar confidence."""

    low: float
    high: float
    count: int
    confidence: float
    """Mean."""
    accuracy: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Calibration:
    """Whether a confidence of 0.9 is right nine times out of ten."""

    bins: list[Bin]
    """Those that hold predictions."""
    error: float
    """Expected calibration error: the mean gap between confidence and accuracy over the bins, by their counts."""
    gap: float
    """Mean confidence minus accuracy; above 0 is over-confident."""


def calibration(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> Calibration:
    """In ten bins of equal width."""
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    bins = []
    for number in np.unique(place):
        members = place == number
        count, good = int(members.sum()), int(right[members].sum())
        mean = float(confidence[members].mean())
        bins.append(Bin(number / BINS, (number + 1) / BINS, count, mean, good / count, wilson(good, count)))
    error = sum(item.count * abs(item.accuracy - item.confidence) for item in bins) / len(right)
    return Calibration(bins, float(error), float(confidence.mean() - right.mean()))

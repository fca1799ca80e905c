"""How right predictions are, where the truth is known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from debiaspl.report.chance import wilson
from debiaspl.report.confusion import Cells

BINS = 10


@dataclass(frozen=True, eq=False)
class Agreement:
    """Predictions against the truth."""

    cells: Cells
    known: int
    """Images whose truth is known; all else is of these."""
    accuracy: float
    interval: tuple[float, float]
    """Wilson's 95 % interval of the accuracy."""

    @property
    def precision(self) -> list[float | None]:
        """Of each class: the share of its predictions that are true; None if it was never predicted."""
        return _ratios(self.cells.right, self.cells.of_predicted)

    @property
    def recall(self) -> list[float | None]:
        """Of each class: the share of its images that were recognised; None if it has no images."""
        return _ratios(self.cells.right, self.cells.of_true)


def agreement(truth: NDArray[np.int64], label: NDArray[np.int64], classes: int) -> Agreement:
    cells = Cells.of(truth, label, classes)
    known, right = int(cells.count.sum()), int(cells.right.sum())
    return Agreement(cells, known, right / known, wilson(right, known))


@dataclass(frozen=True)
class Bin:
    """Predictions of about one confidence."""

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
    """Mean confidence less accuracy: above 0 is over-confident."""


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


def _ratios(part: NDArray[np.int64], whole: NDArray[np.int64]) -> list[float | None]:
    return [int(a) / int(b) if b else None for a, b in zip(part, whole, strict=True)]

"""What counts of classes show: confusion matrices without their zeros, class shares, and whether a finding is
significant, by exact tests and intervals.

``scipy.special`` is imported where it is used, in 0.2 s. ``scipy.stats`` is not: every run that writes its page would
need a second more.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LARGEST_SQUARE = 200
"""Results with more classes list the cells that are not 0."""
ALMOST_NONE = 0.1
"""Share of the expected labels below which a class is reported to have almost none."""
LEAST_COUNT = 10
"""Smallest count for which a ratio is reported: of a class without labels it would repeat the size of the largest."""
UNLIKE = 3
TRUE, EVEN = "true shares", "even shares"
LEVEL = 0.01
"""A finding is significant, and gives advice, where chance alone would show as much less often than this."""
SMALLEST = 1e-6
"""A smaller probability is printed as "less than" this."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A confusion matrix without its zeros, row by row: of ten thousand classes, nearly all of a hundred million cells
    are 0."""

    classes: int
    true: NDArray[np.int64]
    predicted: NDArray[np.int64]
    count: NDArray[np.int64]

    @classmethod
    def of(cls, truth: ArrayLike, label: ArrayLike, classes: int) -> "Cells":
        """Count pairs of true and predicted class; rows without a known truth are left out."""
        truth, label = np.asarray(truth, np.int64), np.asarray(label, np.int64)
        known = truth >= 0
        places, count = np.unique(truth[known] * classes + label[known], return_counts=True)
        return cls(classes, places // classes, places % classes, count.astype(np.int64))

    @classmethod
    def of_dense(cls, matrix: ArrayLike) -> "Cells":
        """From rows: true class, columns: predicted class."""
        dense = np.asarray(matrix, np.int64)
        true, predicted = np.nonzero(dense)
        return cls(len(dense), true, predicted, dense[true, predicted])

    @classmethod
    def sum(cls, parts: Sequence["Cells"]) -> "Cells":
        """Of matrices of the same classes."""
        size = parts[0].classes
        places = np.concatenate([one.true * size + one.predicted for one in parts])
        cells, at = np.unique(places, return_inverse=True)
        count = np.bincount(at, np.concatenate([one.count for one in parts]), len(cells)).astype(np.int64)
        return cls(size, cells // size, cells % size, count)

    @classmethod
    def from_json(cls, value: Any, classes: int) -> "Cells":
        """What ``to_json`` made, of so many classes. Raises ValueError for anything else: results are untrusted."""
        try:
            if isinstance(value, list) and [len(row) for row in value] == [classes] * classes:
                found = cls.of_dense(_counts(value))
            else:
                true, predicted, count = _counts(value["cells"]).reshape(-1, 3).T
                found = cls(classes, true, predicted, count)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ValueError(f"it is not a confusion matrix of {classes} classes") from None
        if len(found.true) and max(found.true.max(), found.predicted.max()) >= classes:
            raise ValueError(f"it has a cell outside of {classes} classes")
        return found

    def to_json(self) -> list[list[int]] | dict[str, Any]:
        """Rows: true class, columns: predicted class. Of many classes: true class, predicted class and count of each
        cell that is not 0."""
        if self.classes <= LARGEST_SQUARE:
            return self.dense().tolist()
        return {"classes": self.classes, "cells": np.stack([self.true, self.predicted, self.count], 1).tolist()}

    def dense(self) -> NDArray[np.int64]:
        """Rows: true class. Columns: predicted class."""
        matrix = np.zeros((self.classes, self.classes), np.int64)
        matrix[self.true, self.predicted] = self.count
        return matrix

    @property
    def images(self) -> int:
        return int(self.count.sum())

    @property
    def right(self) -> NDArray[np.int64]:
        """Of each class, the predictions that are true."""
        own = self.true == self.predicted
        return self._sum(self.true[own], self.count[own])

    @property
    def of_true(self) -> NDArray[np.int64]:
        """Images of each class."""
        return self._sum(self.true, self.count)

    @property
    def of_predicted(self) -> NDArray[np.int64]:
        """Predictions of each class, among those whose truth is known."""
        return self._sum(self.predicted, self.count)

    @property
    def accuracy(self) -> float:
        """Share of the images that are predicted right."""
        return int(self.right.sum()) / self.images

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy."""
        return wilson(int(self.right.sum()), self.images)

    @property
    def recall(self) -> list[float | None]:
        """Share of the images of each class that are predicted right; None without images."""
        return self._right_of(self.of_true)

    @property
    def precision(self) -> list[float | None]:
        """Share of the predictions of each class that are right; None without predictions."""
        return self._right_of(self.of_predicted)

    def mistakes(self) -> "Cells":
        """The cells off the diagonal, the largest first."""
        off = np.flatnonzero(self.true != self.predicted)
        off = off[np.lexsort((self.predicted[off], self.true[off], -self.count[off]))]
        return Cells(self.classes, self.true[off], self.predicted[off], self.count[off])

    def taken_for(self) -> dict[int, tuple[int, int]]:
        """Class -> the class that its images are most often mistaken for, and how many."""
        wrong = self.mistakes()
        rows = zip(wrong.true.tolist(), wrong.predicted.tolist(), wrong.count.tolist(), strict=True)
        return {true: (predicted, count) for true, predicted, count in reversed(list(rows))}

    def _right_of(self, whole: NDArray[np.int64]) -> list[float | None]:
        pairs = zip(self.right.tolist(), whole.tolist(), strict=True)
        return [right / images if images else None for right, images in pairs]

    def _sum(self, place: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(place, count, minlength=self.classes).astype(np.int64)


def _counts(value: Any) -> NDArray[np.int64]:
    """Whole numbers of at least 0, below 2 ** 53. Raises ValueError or TypeError for other values."""
    counts = np.asarray(value if len(value) else np.zeros((0, 0), np.int64))
    if counts.dtype.kind != "i" or counts.min(initial=0) < 0 or counts.max(initial=0) >= 2**53:
        raise ValueError("it holds values that are not counts")
    return counts


def distance(shares: Sequence[float], reference: Sequence[float] | None = None) -> float:
    """Total variation distance, 0 to 1: the share of labels that would have to change class to match the reference, by
    default even shares. Counts or shares, not all 0."""
    expected = [1.0] * len(shares) if reference is None else reference
    total, whole = sum(shares), sum(expected)
    return sum(abs(one / total - other / whole) for one, other in zip(shares, expected, strict=True)) / 2


def unlike(labels: Sequence[float], predicted: Sequence[float]) -> bool:
    """Whether labels are spread over the classes so unlike the predictions that they do not measure the accuracy on all
    images: of one class they hold ``UNLIKE`` times as much as of another."""
    if not labels or not all(labels) or not sum(predicted):
        return False
    shares = [max(said, 1) / given for given, said in zip(labels, predicted, strict=True)]
    return max(shares) >= UNLIKE * min(shares)


def almost_none(counts: Sequence[float], reference: Sequence[float] | None = None) -> int:
    """Number of classes with less than a tenth of the labels expected from the reference."""
    expected = [1.0] * len(counts) if reference is None else reference
    total, whole = sum(counts), sum(expected)
    pairs = zip(counts, expected, strict=True)
    return sum(share > 0 and count * whole < ALMOST_NONE * share * total for count, share in pairs)


def ratio(counts: Sequence[float]) -> float | None:
    """Largest count divided by the smallest; None if the smallest is below 10."""
    least = min(counts)
    return max(counts) / least if least >= LEAST_COUNT else None


def reference_name(reference: object) -> str:
    return EVEN if reference is None else TRUE


def pseudo_measures(results: Mapping[str, Any]) -> dict[str, Any]:
    """``distance``, ``almost_none`` and ``reference`` of a run's pseudo-labels, from their counts; empty if there are
    none. Where the true classes are not known they are compared with even shares."""
    counts, true = results.get("pseudo_labels"), results.get("true_counts")
    if not counts or not any(counts):
        return {}
    return {
        "distance": distance(counts, true),
        "almost_none": almost_none(counts, true),
        "reference": reference_name(true),
    }


@dataclass(frozen=True)
class Finding:
    """What was found, what to do next, and the part of the page that shows it."""

    fact: str
    todo: str
    part: str
    chance: float | None = None
    """How often chance alone would show as much; None where no test applies."""


def told(chance: float) -> str:
    """Whether it is significant, and how often chance alone would show as much."""
    side = "significant" if chance <= LEVEL else "not significant"
    return side if chance > 0.5 else f"{side}, {_odds(chance)} by chance"


def at_least(count: int, trials: int, share: float) -> float:
    """The probability of ``count`` or more successes in these trials (binomial)."""
    from scipy.special import bdtrc

    return float(bdtrc(min(count - 1, trials), trials, share))


def at_most(count: int, trials: int, share: float) -> float:
    """The probability of ``count`` or fewer successes."""
    return at_least(trials - count, trials, 1 - share)


def drawn_at_least(count: int, draws: int, special: int, total: int) -> float:
    """The probability that ``count`` or more of the draws, without replacement from ``total``, are special
    (hypergeometric)."""
    from scipy.special import gammaln

    def ways(things: Any, chosen: Any) -> Any:
        """The logarithm of the number of ways to choose."""
        return gammaln(things + 1.0) - gammaln(chosen + 1.0) - gammaln(things - chosen + 1.0)

    least, most = max(0, draws + special - total), min(draws, special)
    if count <= least:
        return 1.0
    found = np.arange(count, most + 1)
    logs = ways(special, found) + ways(total - special, draws - found) - ways(total, draws)
    return min(1.0, float(np.exp(logs).sum()))


def drawn_at_most(count: int, draws: int, special: int, total: int) -> float:
    """The probability that ``count`` or fewer are."""
    return drawn_at_least(draws - count, draws, total - special, total)


def any_at_least(count: int, probabilities: Iterable[float]) -> float:
    """The probability that ``count`` or more of independent events happen, each with its own probability."""
    happened = np.zeros(max(count, 0) + 1)
    happened[0] = 1.0  # the last place gathers "so many or more"
    for probability in probabilities:
        moved = happened[:-1] * probability
        happened[:-1] -= moved
        happened[1:] += moved
    return float(happened[-1]) if count > 0 else 1.0


def mcnemar(more: int, less: int, sides: int = 2) -> float:
    """The p-value of the exact test of pairs (McNemar's, and the sign test): a fair coin for each pair. With one side,
    only an excess of ``more`` counts."""
    if sides == 1:
        return at_least(more, more + less, 0.5)
    return min(1.0, 2 * at_least(max(more, less), more + less, 0.5))


def wilson(right: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share: unlike the normal one it stays within 0 to 1, and has a width at 0 and 1."""
    if total == 0:
        return 0.0, 1.0
    z, share = statistics.NormalDist().inv_cdf(0.975), right / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    reach = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    # At the ends exactly: rounding would leave 1e-18 there.
    return (0.0 if right == 0 else middle - reach), (1.0 if right == total else middle + reach)


def exact_interval(right: float, total: float, level: float) -> tuple[float, float]:
    """The exact interval of a share (Clopper and Pearson): it holds it at least this often. Counts may be fractions."""
    from scipy.special import betaincinv

    tail, wrong = (1 - level) / 2, total - right
    low = float(betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0
    return low, float(betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0


def _odds(chance: float) -> str:
    if chance < SMALLEST:
        return f"less than 1 in {round(1 / SMALLEST):,}"
    times = 1 / chance
    rounded = round(times, 1 - math.floor(math.log10(times)))
    if chance > LEVEL:  # rounded up it would read as significant
        rounded = min(rounded, 1 / LEVEL - 1)
    return f"1 in {rounded:,.0f}"

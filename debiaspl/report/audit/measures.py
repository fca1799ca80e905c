"""How imbalanced predictions are, in all and above a confidence threshold; whether a confidence can be trusted; and
what debiasing would change."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl._measures import Cells, almost_none, distance, ratio, reference_name, wilson
from debiaspl.predictions import Predictions, Scores

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
        return {
            "distance": self.distance,
            "distance_from": self.reference,
            "almost_none": self.almost_none,
            "imbalance_ratio": ratio(self.counts.tolist()),
            "effective_classes": self.effective_classes,
        }

    @property
    def effective_classes(self) -> float | None:
        """exp(entropy): the number of evenly used classes that would be as diverse; None without predictions."""
        used = self.counts[self.counts > 0] / max(self.counts.sum(), 1)
        return float(np.exp(-(used * np.log(used)).sum())) if len(used) else None

    @property
    def never(self) -> list[int]:
        """Classes without a prediction."""
        return np.flatnonzero(self.counts == 0).tolist()

    @property
    def times_even(self) -> NDArray[np.float64]:
        """Each class's predictions over an even share."""
        return self.counts.astype(np.float64) * (len(self.counts) / max(int(self.counts.sum()), 1))


def shares_of(label: NDArray[np.int64], classes: int, truth: NDArray[np.int64] | None = None) -> Shares:
    """The shares of these labels. ``truth`` are the true classes of all images, -1 where not known."""
    known = truth is not None and len(truth) > 0 and bool((truth >= 0).all())
    true = np.bincount(truth, minlength=classes).tolist() if known and truth is not None else None
    return Shares(np.bincount(label, minlength=classes), true)


def above_thresholds(
    label: NDArray[np.int64], confidence: NDArray[np.float64], classes: int, truth: NDArray[np.int64] | None
) -> list[dict[str, Any]]:
    """The predictions kept by several thresholds. The paper finds them more imbalanced at higher thresholds."""
    rows = []
    for threshold in THRESHOLDS:
        keep = confidence >= threshold
        kept, shares = int(keep.sum()), shares_of(label[keep], classes, truth)
        known = np.zeros(0, bool) if truth is None else (label == truth)[keep & (truth >= 0)]
        rows.append(
            {
                "threshold": threshold,
                "kept": kept,
                "kept_share": kept / len(label),
                "largest_times_even": float(shares.times_even.max()) if kept else None,
                **shares.to_json(),
                "never_predicted": len(shares.never),
                "accuracy": float(known.mean()) if len(known) else None,
            }
        )
    return rows


def calibration(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> dict[str, Any]:
    """Whether a confidence of 0.9 is right nine times out of ten.

    ``bins`` are ten of equal width, without empty ones; ``error`` is the mean gap between confidence and accuracy over
    the bins, by their counts; ``gap`` is mean confidence minus accuracy: above 0 is over-confident.
    """
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    bins, error = [], 0.0
    for number in np.unique(place).tolist():
        members = place == number
        count, good, mean = int(members.sum()), int(right[members].sum()), float(confidence[members].mean())
        error += count * abs(good / count - mean) / len(right)
        shown = {"confidence": mean, "accuracy": good / count, "interval": wilson(good, count)}
        bins.append({"low": number / BINS, "high": (number + 1) / BINS, "count": count} | shown)
    return {"bins": bins, "error": error, "gap": float(confidence.mean() - right.mean())}


@dataclass(frozen=True, eq=False)
class Change:
    """Predictions after the paper's correction (Eq. 3), with the mean prediction as the prior."""

    strength: float
    label: NDArray[np.int64]
    confidence: NDArray[np.float64]
    shares: Shares
    moved: Cells
    """Counts by class in the file and class after the correction, of images that change."""
    rows: NDArray[np.int64]
    """Images that change class, the most confident new label first."""
    accuracy: float | None
    """After the correction, where the truth is known."""

    def to_json(self) -> dict[str, Any]:
        numbers = {"changed": len(self.rows), "accuracy": self.accuracy}
        return {"strength": self.strength, **self.shares.to_json(), **numbers}


def change(predictions: Predictions, strength: float) -> Change | None:
    """The change by the correction; None for labels without scores of the other classes."""
    scores = predictions.scores
    if scores is None:
        return None
    label, confidence = corrected(scores, strength)
    rows = np.flatnonzero(label != predictions.label)
    truth = predictions.truth
    return Change(
        strength,
        label,
        confidence,
        shares_of(label, scores.num_classes, truth),
        Cells.of(predictions.label, label, scores.num_classes).mistakes(),
        rows[np.argsort(-confidence[rows], kind="stable")],
        None if truth is None else float((label == truth)[truth >= 0].mean()),
    )


def corrected(scores: Scores, strength: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels and confidences as in training: ``Debiaser`` with the mean of the raw probabilities as its prior."""
    import torch

    from debiaspl.debias import Debiaser

    total = np.zeros(scores.num_classes)
    for rows in scores.parts():
        total += scores.probabilities(rows).sum(0, dtype=np.float64)
    debiaser = Debiaser(scores.num_classes, strength)
    debiaser.prior.copy_(torch.from_numpy(total / len(scores)))
    label, confidence = np.empty(len(scores), np.int64), np.empty(len(scores))
    for rows in scores.parts():
        best = debiaser.probabilities(torch.from_numpy(scores.logits(rows))).max(-1)
        label[rows], confidence[rows] = best.indices.numpy(), best.values.numpy()
    return label, confidence

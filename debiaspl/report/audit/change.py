"""What debiasing would change: the paper's correction (Eq. 3) with the mean prediction as the prior."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl._measures import Cells
from debiaspl.predictions import Predictions, Scores
from debiaspl.report.audit.measures import Shares, shares_of


@dataclass(frozen=True, eq=False)
class Change:
    """Predictions after the correction."""

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
    truth, accuracy = predictions.truth, None
    if truth is not None:
        accuracy = float((label == truth)[truth >= 0].mean())
    return Change(
        strength,
        label,
        confidence,
        shares_of(label, scores.num_classes, truth),
        Cells.of(predictions.label, label, scores.num_classes).mistakes(),
        rows[np.argsort(-confidence[rows], kind="stable")],
        accuracy,
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

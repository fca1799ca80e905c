"""The audit: all numbers that its table, its JSON and its page show."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from debiaspl._measures import Cells
from debiaspl.predictions import Predictions
from debiaspl.report.audit.measures import Change, Shares, above_thresholds, calibration, change, shares_of

STRENGTH = 0.5
ENOUGH, ENOUGH_PER_CLASS = 100, 10
"""The numbers of images, and of images per class, whose true classes speak for all images."""


@dataclass(frozen=True, eq=False)
class Audit:
    """All measures of an audit. Those that need columns that the file does not have are None."""

    predictions: Predictions
    shares: Shares
    thresholds: list[dict[str, Any]] | None
    """Needs a confidence."""
    cells: Cells | None
    """Predictions against the true classes, of the images that have one. Needs the truth."""
    calibration: dict[str, Any] | None
    """Needs the truth and a confidence."""
    change: Change | None
    """Needs probabilities or logits."""

    @property
    def classes(self) -> tuple[str, ...]:
        return self.predictions.classes

    @property
    def enough(self) -> int:
        """How many images must have a known class for findings about all of them."""
        return min(len(self.predictions), max(ENOUGH, ENOUGH_PER_CLASS * len(self.classes)))

    @property
    def truth(self) -> Cells | None:
        """``cells``, if enough images have a known class: a few would hide what all predictions show."""
        return self.cells if self.cells is not None and self.cells.images >= self.enough else None

    def to_json(self) -> dict[str, Any]:
        """The numbers, by name; docs/audit.md says what each is."""
        numbers: dict[str, Any] = {
            "source": self.predictions.origin,
            "predictions": len(self.predictions),
            "classes": list(self.classes),
            "counts": self._by_class(self.shares.counts.tolist()),
            **self.shares.to_json(),
            "never_predicted": self._names(self.shares.never),
        }
        if self.thresholds is not None:
            numbers["thresholds"] = self.thresholds
        if self.cells is not None:
            numbers |= {
                "truth_known": self.cells.images,
                "accuracy": self.cells.accuracy,
                "accuracy_interval": list(self.cells.interval),
                "precision": self._by_class(self.cells.precision),
                "recall": self._by_class(self.cells.recall),
                "confusion": self.cells.to_json(),
            }
        if self.calibration is not None:
            numbers["calibration_error"] = self.calibration["error"]
        if self.change is not None:
            after = self.change.shares
            names = {"counts": self._by_class(after.counts.tolist()), "never_predicted": self._names(after.never)}
            numbers["debiased"] = self.change.to_json() | names
        return numbers

    def _names(self, numbers: list[int]) -> list[str]:
        return [self.classes[number] for number in numbers]

    def _by_class(self, values: list[Any]) -> dict[str, Any]:
        return dict(zip(self.classes, values, strict=True))


def audit(predictions: Predictions, strength: float = STRENGTH) -> Audit:
    """Compute all measures that the predictions allow. ``strength`` is how much of the bias the correction would
    remove (the paper's lambda)."""
    classes, label, truth = len(predictions.classes), predictions.label, predictions.truth
    confidence = predictions.confidence
    shares = shares_of(label, classes, truth)
    calibrated = None
    if truth is not None and confidence is not None:
        known = truth >= 0
        calibrated = calibration(confidence[known], np.asarray(label[known] == truth[known]))
    return Audit(
        predictions,
        shares,
        None if confidence is None else above_thresholds(label, confidence, classes, truth),
        None if truth is None else Cells.of(truth, label, classes),
        calibrated,
        change(predictions, strength),
    )

"""Checked predictions, the input of the audit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl._checks import did_you_mean
from debiaspl.predictions.classes import UNKNOWN, class_names, numbered, values_of
from debiaspl.predictions.scores import Scores
from debiaspl.predictions.table import (
    Names,
    PredictionsError,
    Raw,
    column_of,
    is_number,
    listed,
    refuse_other_kinds,
    rows_named,
)


@dataclass(frozen=True, eq=False)
class Predictions:
    """One class per image, and optional truth and scores."""

    origin: str
    """Where they come from, for messages."""
    classes: tuple[str, ...]
    label: NDArray[np.int64]
    """The predicted class of every image."""
    file_names: tuple[str, ...] | None = None
    confidence: NDArray[np.float64] | None = None
    """The probability of the predicted class."""
    truth: NDArray[np.int64] | None = None
    """The true class; -1 if it is not known."""
    scores: Scores | None = None
    """Probabilities or logits of every class."""
    label_counts: NDArray[np.int64] | None = None
    """Of a run: the labels of each class that it learned from."""

    def __len__(self) -> int:
        return len(self.label)

    def name(self, row: int) -> str:
        """The name of the image, for messages."""
        return f"row {row + 1:,}" if self.file_names is None else self.file_names[row]


def predictions_from(raw: Raw, names: Names | None = None, classes: Sequence[str] | None = None) -> Predictions:
    """Check raw predictions, and give every class a number."""
    names = names or {}
    if raw.rows == 0:
        raise PredictionsError(f"{raw.origin} has no rows, expected one prediction per row.")
    _refuse_unequal(raw)
    scores = _scores(raw)
    named = classes if classes is not None else raw.classes or ()
    columns = {what: _field(raw, names, what) for what in ("label", "truth")}
    if columns["label"] is None and scores is None:
        found = f"{raw.origin} has the columns {listed([*raw.fields, *raw.matrices]) or 'none'}"
        expected = "'label' (the predicted class), or scores of each class (probability:CLASS, logit:CLASS)"
        todo = "In CSV, separate columns by commas. If one has another name: --column label=NAME."
        raise PredictionsError(f"{found}, expected {expected}. {todo}")
    label, truth = (None if found is None else values_of(found, what, named) for what, found in columns.items())
    if label is not None and "" not in named:
        _refuse_missing(np.array([not text for text in label]))
    known = class_names(raw, None if scores is None else scores.num_classes, classes, label, truth)
    labels = None if label is None else numbered(label, known, "label")
    truths = None if truth is None else numbered(truth, known, "truth")
    if labels is not None:
        _refuse_missing(labels == UNKNOWN)
    if truths is not None and (truths == UNKNOWN).all():
        truths = None
    confidence = _confidence(raw, names)
    if scores is not None:
        labels, confidence = _from_scores(scores, labels, confidence)
    assert labels is not None
    file_names = _field(raw, names, "file")
    return Predictions(
        origin=raw.origin,
        classes=known,
        label=labels,
        file_names=None if file_names is None else tuple(map(str, file_names.tolist())),
        confidence=confidence,
        truth=truths,
        scores=scores,
    )


def _field(raw: Raw, names: Names, role: str) -> NDArray[Any] | None:
    """The column of this role; raises if a column was requested by name and is missing."""
    name = column_of(role, raw.fields, names)
    if name is None:
        return None
    if name not in raw.fields:
        others = did_you_mean(name, raw.fields) or f" It has {listed(raw.fields) or 'none'}."
        raise PredictionsError(f"{raw.origin} has no column {name!r} for the {role}.{others}")
    refuse_other_kinds(name, raw.fields[name])
    return raw.fields[name]


def _refuse_missing(missing: NDArray[np.bool_]) -> None:
    if missing.any():
        rows = rows_named(np.flatnonzero(missing).tolist())
        raise PredictionsError(f"there is no label in {rows}, expected a predicted class in every row.")


def _refuse_unequal(raw: Raw) -> None:
    lengths = {name: len(values) for name, values in (*raw.fields.items(), *raw.matrices.items())}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise PredictionsError(f"{raw.origin} has arrays of different lengths ({told}), expected one row per image.")


def _scores(raw: Raw) -> Scores | None:
    if len(raw.matrices) > 1:
        raise PredictionsError(f"{raw.origin} has probabilities and logits, expected one of them. Leave one out.")
    for name, values in raw.matrices.items():
        if values.ndim != 2 or values.shape[1] == 0 or not np.issubdtype(values.dtype, np.floating):
            found = f"{name} have shape {values.shape} and type {values.dtype}"
            raise PredictionsError(f"{found}, expected floating-point numbers, (images, classes).")
        scores = Scores(values, are_logits=name == "logits")
        scores.check()
        return scores
    return None


def _from_scores(
    scores: Scores, label: NDArray[np.int64] | None, confidence: NDArray[np.float64] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels and confidences, from the scores if the file has none."""
    labels = np.empty(len(scores), np.int64) if label is None else label
    sure = np.empty(len(scores), np.float64)
    for rows in scores.parts():
        probabilities = scores.probabilities(rows)
        if label is None:
            labels[rows] = probabilities.argmax(1)
        sure[rows] = np.take_along_axis(probabilities, labels[rows, None], 1)[:, 0]
    return labels, sure if confidence is None else confidence


def _confidence(raw: Raw, names: Names) -> NDArray[np.float64] | None:
    column = _field(raw, names, "confidence")
    if column is None:
        return None
    values = np.array([float(value) if is_number(value) else np.nan for value in column.tolist()])
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(bad):
        where = f"in {rows_named(bad.tolist())} is no number from 0 to 1 (the first is {str(column[bad[0]])!r})"
        todo = "Fill it in, divide percentages by 100, or use --column confidence=NAME."
        raise PredictionsError(f"the confidence {where}. {todo}")
    return values

"""Confusion matrices without their zeros: ten thousand classes have a hundred million cells, nearly all of them 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LARGEST_SQUARE = 200
"""Results with more classes list the cells that are not 0."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A confusion matrix without its zeros, row by row."""

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
            return self.dense().tolist()  # type: ignore[no-any-return]  # NumPy does not say
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
    def recall(self) -> list[float | None]:
        """Share of the images of each class that are predicted right; None without images."""
        pairs = zip(self.right.tolist(), self.of_true.tolist(), strict=True)
        return [right / images if images else None for right, images in pairs]

    def mistakes(self) -> "Cells":
        """The cells off the diagonal, the largest first."""
        off = np.flatnonzero(self.true != self.predicted)
        off = off[np.lexsort((self.predicted[off], self.true[off], -self.count[off]))]
        return Cells(self.classes, self.true[off], self.predicted[off], self.count[off])

    def _sum(self, place: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(place, count, minlength=self.classes).astype(np.int64)


def _counts(value: Any) -> NDArray[np.int64]:
    """Whole numbers of at least 0, below 2 ** 53. Raises ValueError or TypeError for other values."""
    counts = np.asarray(value if len(value) else np.zeros((0, 0), np.int64))
    if counts.dtype.kind != "i" or counts.min(initial=0) < 0 or counts.max(initial=0) >= 2**53:
        raise ValueError("it holds values that are not counts")
    return counts

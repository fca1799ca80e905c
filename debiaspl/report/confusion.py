"""Confusion matrices, and an order of the classes in which confused ones are next to each other."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_CELLS = 60_000
"""Cells of a matrix that a page carries."""
MOST_CLASSES = 2_000
"""A matrix of more classes is not drawn; the list of mistakes is still shown."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A confusion matrix without its zeros, row by row: a thousand classes have a million cells, most of them empty."""

    classes: int
    true: NDArray[np.int64]
    predicted: NDArray[np.int64]
    count: NDArray[np.int64]

    @classmethod
    def of(cls, truth: NDArray[np.int64], label: NDArray[np.int64], classes: int) -> "Cells":
        """Count pairs of true and predicted class; rows without a known truth are left out."""
        known = truth >= 0
        places, count = np.unique(truth[known] * classes + label[known], return_counts=True)
        return cls(classes, places // classes, places % classes, count.astype(np.int64))

    @classmethod
    def of_dense(cls, matrix: list[list[int]]) -> "Cells":
        """From rows: true class, columns: predicted class."""
        dense = np.asarray(matrix, np.int64)
        true, predicted = np.nonzero(dense)
        return cls(len(dense), true, predicted, dense[true, predicted])

    def dense(self) -> NDArray[np.int64]:
        """Rows: true class. Columns: predicted class."""
        matrix = np.zeros((self.classes, self.classes), np.int64)
        matrix[self.true, self.predicted] = self.count
        return matrix

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

    def mistakes(self) -> "Cells":
        """The cells off the diagonal, the largest first."""
        off = np.flatnonzero(self.true != self.predicted)
        off = off[np.lexsort((self.predicted[off], self.true[off], -self.count[off]))]
        return Cells(self.classes, self.true[off], self.predicted[off], self.count[off])

    def _sum(self, place: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(place, count, minlength=self.classes).astype(np.int64)


def matrix_of(cells: Cells, most: int = MOST_CELLS) -> dict[str, Any]:
    """Row by row, predicted class and count by turns; of more cells than ``most`` the smallest are left out."""
    kept = np.sort(np.argsort(-cells.count, kind="stable")[:most])
    pairs = np.stack([cells.predicted[kept], cells.count[kept]], 1)
    ends = np.searchsorted(cells.true[kept], np.arange(1, cells.classes))
    return {
        "rows": [part.reshape(-1).tolist() for part in np.split(pairs, ends)],
        "totals": cells.of_true.tolist(),
        "left_out": int(cells.count.sum() - cells.count[kept].sum()),
    }


def confusion_order(cells: Cells) -> list[int]:
    """An order of the classes by average linkage of their confusions, in which confused classes are next to each other.

    scipy's optimal_leaf_ordering would need 2 s for 1,000 classes, and its order was not better.
    """
    if not 1 < cells.classes <= MOST_CLASSES:
        return list(range(cells.classes))
    from scipy.cluster.hierarchy import linkage

    shares = cells.dense() / np.maximum(cells.of_true, 1)[:, None]
    near = (shares + shares.T) / 2  # how much of two classes is taken for one another
    joins = linkage(1 - near[np.triu_indices(cells.classes, 1)], "average")
    groups = {number: [number] for number in range(cells.classes)}
    for place, (one, other, distance, _) in enumerate(joins.tolist()):
        if distance >= 1:  # never confused
            break
        first, second = groups.pop(int(one)), groups.pop(int(other))
        ways = [(a, b) for a in (first, first[::-1]) for b in (second, second[::-1])]
        first, second = max(ways, key=lambda way: near[way[0][-1], way[1][0]])
        groups[cells.classes + place] = first + second
    return [number for group in sorted(groups.values(), key=min) for number in group]

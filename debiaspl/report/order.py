"""An order of classes in which those that are confused stand together."""

import numpy as np
from numpy.typing import NDArray

from debiaspl.report.confusion import Cells

MOST_CLASSES = 2_000
"""Above this a matrix is too large to order and to draw; the list of mistakes remains."""


def confusion_order(cells: Cells) -> list[int]:
    """Join what is confused most, again and again (average linkage), and set the ends that fit side by side.

    scipy's optimal_leaf_ordering would need 2 s for 1,000 classes, and its neighbours were confused no more.
    """
    if not 1 < cells.classes <= MOST_CLASSES:
        return list(range(cells.classes))
    from scipy.cluster.hierarchy import linkage

    near = _closeness(cells)
    joins = linkage(1 - near[np.triu_indices(cells.classes, 1)], "average")
    groups = {number: [number] for number in range(cells.classes)}
    for place, (one, other, distance, _) in enumerate(joins.tolist()):
        if distance >= 1:  # never confused
            break
        groups[cells.classes + place] = _joined(groups.pop(int(one)), groups.pop(int(other)), near)
    return [number for group in sorted(groups.values(), key=min) for number in group]


def _closeness(cells: Cells) -> NDArray[np.float64]:
    """How much of two classes is taken for one another."""
    shares = cells.dense() / np.maximum(cells.of_true, 1)[:, None]
    near: NDArray[np.float64] = (shares + shares.T) / 2
    return near


def _joined(one: list[int], other: list[int], near: NDArray[np.float64]) -> list[int]:
    """The two groups, each turned so that the ends that meet are the closest."""
    ways = [(a, b) for a in (one, one[::-1]) for b in (other, other[::-1])]
    first, second = max(ways, key=lambda way: near[way[0][-1], way[1][0]])
    return first + second

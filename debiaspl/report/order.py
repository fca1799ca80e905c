"""An order of classes in which those that are confused stand together."""

import numpy as np
from numpy.typing import NDArray

from debiaspl.report.confusion import Cells

MOST_CLASSES = 2_000
"""Above this a matrix is too large to order and to draw; the list of mistakes remains."""


def confusion_order(cells: Cells) -> list[int]:
    """Join what is confused most, again and again (average linkage), and set the ends that fit side by side."""
    if cells.classes > MOST_CLASSES:
        return list(range(cells.classes))
    near = _closeness(cells)
    links = near.copy()
    groups: list[list[int] | None] = [[number] for number in range(cells.classes)]
    best = links.argmax(1)
    for _ in range(cells.classes - 1):
        first = int(links[np.arange(cells.classes), best].argmax())
        second = int(best[first])
        if links[first, second] <= 0:
            break
        first, second = min(first, second), max(first, second)
        one, other = groups[first], groups[second]
        assert one is not None
        assert other is not None
        groups[first], groups[second] = _joined(one, other, near), None
        _merge(links, best, first, second, len(one), len(other))
    return [number for group in groups if group is not None for number in group]


def _closeness(cells: Cells) -> NDArray[np.float64]:
    """How much of two classes is taken for one another; the diagonal is out of the running."""
    shares = cells.dense() / np.maximum(cells.of_true, 1)[:, None]
    near: NDArray[np.float64] = (shares + shares.T) / 2
    np.fill_diagonal(near, -1)
    return near


def _joined(one: list[int], other: list[int], near: NDArray[np.float64]) -> list[int]:
    """The two groups, each turned so that the ends that meet are the closest."""
    ways = [(a, b) for a in (one, one[::-1]) for b in (other, other[::-1])]
    first, second = max(ways, key=lambda way: near[way[0][-1], way[1][0]])
    return first + second


def _merge(
    links: NDArray[np.float64], best: NDArray[np.int64], first: int, second: int, size: int, other_size: int
) -> None:
    """Give ``first`` the mean of both, and take ``second`` out."""
    mean = (size * links[first] + other_size * links[second]) / (size + other_size)
    out = links[first] < 0
    links[first] = links[:, first] = np.where(out | (links[second] < 0), -1, mean)
    links[second] = links[:, second] = -1
    best[first] = links[first].argmax()
    stale = (best == second) | (best == first)
    if stale.any():
        best[stale] = links[stale].argmax(1)
    better = links[:, first] > links[np.arange(len(best)), best]
    best[better] = first

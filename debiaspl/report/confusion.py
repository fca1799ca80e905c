"""Confusion matrices for a page, and an order of the classes in which confused ones are next to each other."""

from typing import Any

import numpy as np

from debiaspl._confusion import Cells

MOST_CELLS = 60_000
"""Cells of a matrix that a page carries."""
MOST_CLASSES = 2_000
"""A matrix of more classes is not drawn; the list of mistakes is still shown."""


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

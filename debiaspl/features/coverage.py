"""Which photos to label: those that cover most of the others (greedy coverage, as in MaxHerding, arXiv 2407.12212).

A photo covers its nearest neighbours by the third power of their cosine, and itself by 1. What counts is, summed over
all photos, how well the best labeled one covers each. A photo weighs 1 / sqrt(its degree), so that a dense cluster does
not take all picks and small classes are found; with a model, it weighs its uncertainty too (arXiv 2412.20644).
"""

import heapq
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from debiaspl.graph import Nearest, directions, nearest

NEIGHBOURS = 50
"""With 10 the choice is worse at two labels a class; more change nothing."""
FADING = -0.5
"""A photo weighs its degree to this power."""


def choose(features: ArrayLike, count: int, labels: ArrayLike | None = None) -> NDArray[np.int64]:
    """Row numbers of the ``count`` photos to label, the most useful first; fewer, if fewer have no label.

    The order is nested: whoever stops after any number of labels has the best choice of that size.

    Args:
        features: a row for each photo, (N, D), as an encoder makes them.
        count: number of photos to choose.
        labels: the labels so far, (N,), -1 for none: these photos are not chosen, and what they cover counts less.
    """
    rows = torch.as_tensor(np.asarray(features))
    if rows.ndim != 2 or len(rows) < 2 or not bool(torch.isfinite(rows).all()):
        raise ValueError(f"features have shape {tuple(rows.shape)}, expected finite (N, D) of two rows or more.")
    given = np.full(len(rows), -1) if labels is None else np.asarray(labels)
    if given.shape != (len(rows),):
        raise ValueError(f"labels have shape {given.shape}, expected one for each of {len(rows)} rows, or -1 for none.")
    units = directions(rows, rows.float().mean(0))
    near = nearest(units, min(NEIGHBOURS, len(units) - 1))
    return Coverage(near).order(count, np.flatnonzero(given >= 0))


class Coverage:
    """How much each photo covers the others, and what each weighs."""

    def __init__(self, near: Nearest, power: float = FADING) -> None:
        """From one search for neighbours; both directions of a pair count."""
        from scipy import sparse

        size, count = near.places.shape
        value = near.weights().cpu().numpy().ravel()
        ends = np.arange(0, size * count + 1, count), near.places.cpu().numpy().ravel()
        edges = sparse.csr_array((value, ends[1], ends[0]), shape=(size, size))
        both = edges.maximum(edges.T) + sparse.eye_array(size, dtype=value.dtype, format="csr")
        self._covers, self._weight = both.tocsr(), np.asarray(both.sum(axis=1), np.float64) ** power

    def order(
        self, count: int, labeled: ArrayLike = (), uncertainty: NDArray[np.float64] | None = None
    ) -> NDArray[np.int64]:
        """Positions of ``count`` photos, each of which adds most to those before it and to the ``labeled`` ones.
        ``uncertainty`` multiplies the weights. The same input gives the same order."""
        covers, weight = self._covers, self._weight if uncertainty is None else self._weight * uncertainty
        best = np.zeros(len(weight), covers.data.dtype)
        taken = set(np.asarray(labeled, np.int64).tolist())
        for place in taken:
            own, cover = self._row(place)
            best[own] = np.maximum(best[own], cover)
        gain = np.maximum(covers.data - best[covers.indices], 0) * weight[covers.indices]
        first = np.add.reduceat(gain, covers.indptr[:-1])
        # Gains only fall as photos are chosen: one that is still the best after it was computed again is the best.
        queue = [(-value, place, 0) for place, value in enumerate(first.tolist()) if place not in taken]
        heapq.heapify(queue)
        chosen: list[int] = []
        while queue and len(chosen) < count:
            _, place, seen = queue[0]
            own, cover = self._row(place)
            if seen == len(chosen):
                heapq.heappop(queue)
                best[own] = np.maximum(best[own], cover)
                chosen.append(place)
            else:
                value = float(np.maximum(cover - best[own], 0) @ weight[own])
                heapq.heapreplace(queue, (-value, place, len(chosen)))
        return np.array(chosen, np.int64)

    def reached(self, labeled: ArrayLike) -> NDArray[np.bool_]:
        """Whether each photo is covered by one of these at all."""
        found = np.zeros(len(self._weight), bool)
        part = self._covers[np.asarray(labeled, np.int64)]
        found[part.indices[part.data > 0]] = True
        return found

    def _row(self, place: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Which photos this one covers, and how much."""
        part = slice(self._covers.indptr[place], self._covers.indptr[place + 1])
        return self._covers.indices[part], self._covers.data[part]

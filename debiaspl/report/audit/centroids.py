"""Which classes are similar: cosine similarity of their mean embeddings (as in the paper's study of confusion)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHOWN, NEIGHBOURS = 10, 9


@dataclass(frozen=True)
class Neighbours:
    """A class and those whose centroids are closest to its own, closest first."""

    number: int
    others: list[int]
    similarity: list[float]

    @property
    def mean(self) -> float:
        return sum(self.similarity) / len(self.similarity)


@dataclass(frozen=True)
class Alike:
    """The most and the least predicted classes among those that have a centroid."""

    by_truth: bool
    """Whether images belong to their true class; else to the predicted one."""
    most: list[Neighbours]
    least: list[Neighbours]
    without: list[int]
    """Classes without images."""


def centroids(
    embeddings: NDArray[Any], member: NDArray[np.int64], classes: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The mean of the normalised embeddings of each class, itself normalised; and which classes have one.

    ``member`` is the class of each image, -1 for none.
    """
    from scipy.sparse import csr_array

    sums = np.zeros((classes, embeddings.shape[1]))
    size = max(1, 2_000_000 // embeddings.shape[1])
    for start in range(0, len(embeddings), size):
        part = embeddings[start : start + size].astype(np.float64)
        part /= np.maximum(np.linalg.norm(part, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        own = member[start : start + size]
        known = np.flatnonzero(own >= 0)
        sums += csr_array((np.ones(len(known)), (own[known], known)), shape=(classes, len(part))) @ part
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    there = np.bincount(member[member >= 0], minlength=classes) > 0
    return sums / np.maximum(length, np.finfo(np.float64).tiny), there


def alike(
    embeddings: NDArray[Any],
    label: NDArray[np.int64],
    truth: NDArray[np.int64] | None,
    counts: NDArray[np.int64],
) -> Alike | None:
    """Neighbours of the ten most and the ten least predicted classes, or of all up to twenty; None if under two."""
    member = label if truth is None else truth
    centres, there = centroids(embeddings, member, len(counts))
    present = np.flatnonzero(there)
    if len(present) < 2:
        return None
    frequent = present[np.argsort(-counts[present], kind="stable")]
    most = frequent[: min(SHOWN, -(-len(present) // 2))]
    least = frequent[::-1][: min(SHOWN, len(present) // 2)]
    return Alike(
        truth is not None,
        [_neighbours(number, centres, present) for number in most],
        [_neighbours(number, centres, present) for number in least],
        np.flatnonzero(~there).tolist(),
    )


def _neighbours(number: int, centres: NDArray[np.float64], present: NDArray[np.int64]) -> Neighbours:
    others = present[present != number]
    similarity = centres[others] @ centres[number]
    nearest = np.argsort(-similarity, kind="stable")[:NEIGHBOURS]
    return Neighbours(int(number), others[nearest].tolist(), similarity[nearest].tolist())

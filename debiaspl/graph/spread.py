"""Labels spread over a graph of neighbours (Zhou et al., 2004): the first labels of images that nobody has labeled."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from debiaspl.graph.neighbours import directions, nearest

COLUMNS = 16
"""Classes that are spread at once."""
MOST_ROUNDS = 500
CLOSE = 1e-5
"""What is left of the error when the rounds end, relative to the labels."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Who is near whom among feature vectors.

    An edge goes to each of the ``neighbours`` nearest vectors, by cosine after the mean is taken off. It weighs its
    similarity to the third power, and both directions count alike.
    """

    mean: Tensor
    """Of the vectors, (D,)."""
    units: Tensor
    """The vectors seen from the mean, of length 1, (N, D)."""
    weights: Any
    """A sparse symmetric matrix of scipy, (N, N), divided by the roots of the sums of its rows and columns."""
    neighbours: int
    power: float

    @classmethod
    @torch.no_grad()
    def of(cls, vectors: Tensor, neighbours: int = 10, power: float = 3.0) -> "Graph":
        """The graph of the rows of ``vectors``, (N, D), on their device."""
        from scipy import sparse

        if vectors.ndim != 2 or len(vectors) < 2:
            raise ValueError(f"vectors have shape {tuple(vectors.shape)}, expected (N, D) with two rows or more.")
        mean = vectors.float().mean(0)
        units = directions(vectors, mean)
        neighbours = min(neighbours, len(units) - 1)
        found = nearest(units, neighbours)
        weight = found.similarity.clamp_min(0).pow(power).double().flatten().cpu().numpy()
        rows = np.repeat(np.arange(len(units)), neighbours)
        edges = sparse.csr_array((weight, (rows, found.places.flatten().cpu().numpy())), shape=(len(units),) * 2)
        both = edges + edges.T
        degree = both.sum(axis=1)
        scale = sparse.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1)))
        return cls(mean, units, (scale @ both @ scale).tocsr(), neighbours, power)

    @torch.no_grad()
    def spread(self, labels: Tensor, num_classes: int, alpha: float = 0.9) -> Tensor:
        """Probabilities of every class for every vector, float32, (N, C), on the CPU.

        Solves (I - alpha S) F = Y, where S are the weights and the labels of each class in Y sum to one, so that a
        class with many labels does not flood the graph. A vector that no label reaches has even probabilities.

        Args:
            labels: int64, (N,); -1 where there is none.
            num_classes: how many classes there are; those without a label are never chosen.
            alpha: how far labels spread: each step along the graph keeps this share.
        """
        known = labels.cpu().numpy()
        if known.shape != (len(self.units),) or known.max(initial=-1) >= num_classes:
            raise ValueError(
                f"{known.shape} labels up to {known.max(initial=-1)}, expected one for each of {len(self.units)} "
                f"vectors, below {num_classes}, or -1 where there is none."
            )
        if not 0 <= alpha < 1:
            raise ValueError(f"alpha is {alpha}, expected a share in [0, 1).")
        scores = np.zeros((len(known), num_classes), np.float32)
        for first in range(0, num_classes, COLUMNS):
            classes = np.arange(first, min(first + COLUMNS, num_classes))
            given = (known[:, None] == classes).astype(np.float64)
            given /= np.maximum(given.sum(0), 1)
            scores[:, classes] = _solved(self.weights, given, alpha)
        return _shares(torch.from_numpy(scores))

    @torch.no_grad()
    def carried(self, probabilities: Tensor, vectors: Tensor) -> Tensor:
        """Probabilities of other vectors, (M, C): of their nearest neighbours here, by the same weights."""
        found = nearest(directions(vectors.to(self.units.device), self.mean), self.neighbours, self.units)
        weight = found.similarity.clamp_min(0).pow(self.power).cpu()
        return _shares(torch.einsum("nk,nkc->nc", weight, probabilities[found.places.cpu()]))


def _solved(weights: Any, given: Any, alpha: float) -> Any:
    """Conjugate gradients for (I - alpha W) F = given, a column for each class."""
    found = np.zeros_like(given)
    rest, ahead = given.copy(), given.copy()
    size = first = np.square(rest).sum(0)
    for _ in range(MOST_ROUNDS):
        if (size <= CLOSE**2 * first).all():
            break
        bent = ahead - alpha * (weights @ ahead)
        # A column that is solved, or has no labels, moves no more.
        step = np.divide(size, (ahead * bent).sum(0), out=np.zeros_like(size), where=size > 0)
        found += step * ahead
        rest -= step * bent
        size, before = np.square(rest).sum(0), size
        ahead = rest + np.divide(size, before, out=np.zeros_like(size), where=before > 0) * ahead
    return found


def _shares(scores: Tensor) -> Tensor:
    """Rows that sum to one; even ones where there is nothing."""
    scores = scores.clamp_min(0)
    total = scores.sum(-1, keepdim=True)
    return torch.where(total > 0, scores / total.clamp_min(torch.finfo(scores.dtype).tiny), 1 / scores.shape[-1])

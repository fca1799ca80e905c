"""Label propagation over a graph of neighbours (Zhou et al., 2004): first labels for unlabeled images."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from debiaspl.graph.neighbours import Nearest, directions, nearest

COLUMNS = 16
"""Classes that are propagated at the same time."""
MOST_ROUNDS = 500
CLOSE = 1e-5
"""Relative error at which the iterations stop."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A symmetric graph of feature vectors: each has an edge to its ``neighbours`` nearest ones, by cosine similarity
    after subtracting the mean. The weight of an edge is the third power of the similarity.
    """

    mean: Tensor
    """Mean of the vectors, (D,)."""
    units: Tensor
    """The vectors minus the mean, scaled to length 1, (N, D); without copies."""
    near: Nearest
    """All neighbours that were searched, of which the graph uses the first ``neighbours``."""
    neighbours: int

    @classmethod
    @torch.no_grad()
    def of(cls, vectors: Tensor, neighbours: int = 10, search: int = 0) -> "Graph":
        """The graph of the rows of ``vectors``, (N, D), two or more, on their device. With a larger ``search``, so many
        neighbours are searched and kept in ``near``."""
        mean, most = vectors.float().mean(0), len(vectors) - 1
        units = directions(vectors, mean)
        return cls(mean, units, nearest(units, min(max(search, neighbours), most)), min(neighbours, most))

    @cached_property
    def weights(self) -> Any:
        """Sparse symmetric scipy matrix, (N, N), divided by the square roots of its row and column sums."""
        from scipy import sparse

        near = self.near.first(self.neighbours)
        weight = near.weights().double().flatten().cpu().numpy()
        size = len(near.places)
        rows = np.repeat(np.arange(size), self.neighbours)
        edges = sparse.csr_array((weight, (rows, near.places.flatten().cpu().numpy())), shape=(size, size))
        symmetric = edges + edges.T
        degree = symmetric.sum(axis=1)
        scale = sparse.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1)))
        return (scale @ symmetric @ scale).tocsr()

    def with_copies(self, rows: Tensor) -> "Graph":
        """The graph with a copy of each of ``rows``, after all others. Labels that spread from copies reach the rows
        themselves as their nearest neighbours do."""
        return replace(self, near=self.near.first(self.neighbours).with_copies(rows))

    @torch.no_grad()
    def spread(self, labels: Tensor, num_classes: int, alpha: float = 0.9) -> Tensor:
        """Class probabilities for every vector, float32, (N, C), on the CPU, by ``labels``, (N,), -1 for none.

        Solves (I - alpha S) F = Y, where S are the weights. The labels of each class in Y sum to one, so that a class
        with many labels does not dominate the graph. A vector that no label reaches gets uniform probabilities.
        ``alpha``, in [0, 1), is the share that is kept at each step along the graph.
        """
        scores = torch.zeros((self.weights.shape[0], num_classes))
        for first, part in self._parts(labels, num_classes, alpha):
            scores[:, first : first + part.shape[1]] = part
        return _shares(scores)

    @torch.no_grad()
    def most_likely(
        self, labels: Tensor, num_classes: int, alpha: float = 0.9, masses: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The largest of ``spread`` and its class for every vector, (N,), without a matrix of all classes. With
        ``masses``, (C,), the labels of each class sum to these, not to one."""
        size = self.weights.shape[0]
        total, best = torch.zeros(size, dtype=torch.float64), torch.zeros(size)
        label = torch.zeros(size, dtype=torch.int64)
        for first, part in self._parts(labels, num_classes, alpha):
            if masses is not None:
                part = part * masses[first : first + part.shape[1]].to(part)
            total += part.clamp_min(0).sum(-1, dtype=torch.float64)
            value, column = part.max(-1)
            label = torch.where(value > best, first + column, label)
            best = torch.maximum(best, value)
        return torch.where(total > 0, best / total, 1 / num_classes).float(), label

    def _parts(self, labels: Tensor, num_classes: int, alpha: float) -> Iterator[tuple[int, Tensor]]:
        """Scores of some classes at a time, float32, (N, columns), with the first of these classes."""
        known = labels.cpu().numpy()
        for first in range(0, num_classes, COLUMNS):
            classes = np.arange(first, min(first + COLUMNS, num_classes))
            given = (known[:, None] == classes).astype(np.float64)
            given /= np.maximum(given.sum(0), 1)
            yield first, torch.from_numpy(_solved(self.weights, given, alpha)).float()

    @torch.no_grad()
    def carried(self, probabilities: Tensor, vectors: Tensor) -> Tensor:
        """Probabilities for other vectors, (M, C): weighted means over their neighbours in the graph."""
        near = nearest(directions(vectors.to(self.units.device), self.mean), self.neighbours, self.units)
        return _shares(torch.einsum("nk,nkc->nc", near.weights().cpu(), probabilities[near.places.cpu()]))


def _solved(weights: Any, given: Any, alpha: float) -> Any:
    """Conjugate gradients for (I - alpha W) F = given, one column per class."""
    solution = np.zeros_like(given)
    residual, direction = given.copy(), given.copy()
    size = first = np.square(residual).sum(0)
    for _ in range(MOST_ROUNDS):
        if (size <= CLOSE**2 * first).all():
            break
        image = direction - alpha * (weights @ direction)
        # A column that is solved or has no labels no longer changes.
        step = np.divide(size, (direction * image).sum(0), out=np.zeros_like(size), where=size > 0)
        solution += step * direction
        residual -= step * image
        size, before = np.square(residual).sum(0), size
        direction = residual + np.divide(size, before, out=np.zeros_like(size), where=before > 0) * direction
    return solution


def _shares(scores: Tensor) -> Tensor:
    """Rows normalised to sum 1; uniform where all scores are 0."""
    scores = scores.clamp_min_(0)
    total = scores.sum(-1, keepdim=True)
    return scores.div_(total.clamp_min(torch.finfo(scores.dtype).tiny)).masked_fill_(total <= 0, 1 / scores.shape[-1])

"""Nearest neighbours by cosine similarity, computed in blocks: the matrix of all pairs is never in memory."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

EXACT = {"cpu": 20_000, "cuda": 200_000}
"""Largest number of vectors for which every pair is compared. Above it, a vector is compared with the nearest cells."""
PROBED = 16
"""Cells that a vector is compared with, including its own."""
ROUNDS = 5
"""Iterations of k-means, which makes the cells."""
POWER = 3.0
"""Weight of an edge: this power of the cosine."""
SAMPLED = 64
"""Vectors per cell that k-means uses."""
MOST_SIMILARITIES = {"cpu": 2**24, "cuda": 2**28}
"""Similarities in memory at the same time."""


class Nearest(NamedTuple):
    """The nearest vectors of each vector, the nearest first."""

    places: Tensor
    """int64, (N, k)."""
    similarity: Tensor
    """Cosines, float32, (N, k)."""

    def first(self, count: int) -> "Nearest":
        """The ``count`` nearest of these, as a search for fewer would find them."""
        return Nearest(self.places[:, :count], self.similarity[:, :count])

    def with_copies(self, rows: Tensor) -> "Nearest":
        """What a search finds where each of ``rows`` is there twice, the copies after all others; without a search."""
        size, count = self.places.shape
        copy = self.places.new_full((size,), -1)
        copy[rows] = torch.arange(size, size + len(rows), device=rows.device)
        # Of each row: its own copy, which is nearest, then its neighbours, each followed by its copy.
        places = torch.cat((copy[:, None], torch.stack((self.places, copy[self.places]), -1).flatten(1)), 1)
        similarity = torch.cat((torch.ones_like(self.similarity[:, :1]), self.similarity.repeat_interleave(2, 1)), 1)
        similarity = similarity.masked_fill(places < 0, -torch.inf)
        of_copies = places[rows]
        of_copies[:, 0] = rows
        places, similarity = torch.cat((places, of_copies)), torch.cat((similarity, similarity[rows]))
        order = similarity.argsort(dim=1, descending=True, stable=True)[:, :count]
        return Nearest(places.gather(1, order), similarity.gather(1, order))

    def weights(self, power: float = POWER) -> Tensor:
        """Weights of the edges, not normalised: cosine ** power, 0 for negative cosines, float32, (N, k)."""
        return self.similarity.clamp_min(0).pow(power)


def directions(vectors: Tensor, mean: Tensor) -> Tensor:
    """Unit vectors, float32, relative to the mean: what all vectors share says nothing about distances."""
    return F.normalize(vectors.float() - mean, dim=-1)


def nearest(units: Tensor, count: int, among: Tensor | None = None, exact: bool | None = None) -> Nearest:
    """The ``count`` nearest rows for each row of ``units``, (N, D), which have length 1. Searches ``among``, (M, D), or
    by default the other rows.

    Small sets are compared pair by pair, large ones by cells (see ``EXACT``), unless ``exact`` is given. With cells, a
    row may find fewer than ``count`` others; the remaining places then have a similarity of -1.
    """
    others = units if among is None else among
    there = len(others) - (among is None)
    if not 1 <= count <= there:
        raise ValueError(f"count is {count} neighbours, expected 1 to {there}: there are {there} vectors.")
    if exact is None:
        exact = len(others) <= EXACT["cuda" if units.is_cuda else "cpu"]
    places = torch.zeros((len(units), count), dtype=torch.int64, device=units.device)
    similarity = torch.full((len(units), count), -1.0, device=units.device)
    for rows, candidates in _pairs(units, others, exact):
        cosines = units[rows] @ (others if candidates is None else others[candidates]).T
        if among is None:
            own = rows if candidates is None else _place_of(rows, candidates)
            cosines.scatter_(1, own[:, None], -torch.inf)
        best = cosines.topk(min(count, cosines.shape[1]))
        taken = best.indices if candidates is None else candidates[best.indices]
        places[rows, : taken.shape[1]] = taken
        similarity[rows, : taken.shape[1]] = best.values.clamp_min(-1)
    return Nearest(places, similarity)


def _pairs(units: Tensor, others: Tensor, exact: bool) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Rows, and what they are compared with: all vectors (None), or the members of the cells near them."""
    everyone, most = (
        torch.arange(len(units), device=units.device),
        MOST_SIMILARITIES["cuda" if units.is_cuda else "cpu"],
    )
    if exact:
        yield from ((rows, None) for rows in torch.split(everyone, max(most // len(others), 1)))
        return
    centres = _centres(others)
    # Equal vectors make equal centres, of which the first gets all members. The others are dropped.
    centres = centres[torch.bincount(_nearest_centre(others, centres), minlength=len(centres)) > 0]
    home = _nearest_centre(others, centres)
    order = home.argsort(stable=True)
    members = torch.split(order, torch.bincount(home, minlength=len(centres)).tolist())
    visits = home if units is others else _nearest_centre(units, centres)
    near = (centres @ centres.T).fill_diagonal_(torch.inf).topk(min(PROBED, len(centres))).indices.tolist()
    visitors = torch.split(visits.argsort(stable=True), torch.bincount(visits, minlength=len(centres)).tolist())
    for rows, cells in zip(visitors, near, strict=True):
        if len(rows):
            candidates = torch.cat([members[cell] for cell in cells]).sort().values
            yield from ((part, candidates) for part in torch.split(rows, max(most // len(candidates), 1)))


def _place_of(rows: Tensor, candidates: Tensor) -> Tensor:
    """Position of each row among the candidates, which are sorted and contain it."""
    return torch.searchsorted(candidates, rows)


def _centres(units: Tensor) -> Tensor:
    """Cell centres by spherical k-means; the number of cells is the square root of the number of vectors."""
    cells = max(int(len(units) ** 0.5), 1)
    some = units[:: max(len(units) // (SAMPLED * cells), 1)]
    centres = some[:: max(len(some) // cells, 1)][:cells].clone()
    for _ in range(ROUNDS):
        home = _nearest_centre(some, centres)
        order = home.argsort(stable=True)
        counts = torch.bincount(home, minlength=len(centres))
        sums = torch.segment_reduce(some[order], "sum", lengths=counts)
        centres = torch.where(counts[:, None] > 0, F.normalize(sums, dim=-1), centres)
    return centres


def _nearest_centre(units: Tensor, centres: Tensor) -> Tensor:
    rows = max(MOST_SIMILARITIES["cuda" if units.is_cuda else "cpu"] // len(centres), 1)
    return torch.cat([(part @ centres.T).argmax(-1) for part in torch.split(units, rows)])

"""Nearest neighbours by cosine, in blocks: there is never a matrix of all pairs."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

EXACT = {"cpu": 20_000, "cuda": 200_000}
"""Vectors up to which every pair is compared. Beyond, a vector is compared with those of the nearest cells."""
PROBED = 16
"""Cells that a vector is compared with, its own among them."""
ROUNDS = 5
"""Of k-means, which makes the cells."""
SAMPLED = 64
"""Vectors per cell that k-means looks at."""
ROOM = {"cpu": 2**24, "cuda": 2**28}
"""Similarities that are held at once."""


class Nearest(NamedTuple):
    """The nearest vectors of each vector, the nearest first."""

    places: Tensor
    """int64, (N, k)."""
    similarity: Tensor
    """Cosines, float32, (N, k)."""


def directions(vectors: Tensor, mean: Tensor) -> Tensor:
    """Unit vectors, float32, seen from the mean: what all have in common says nothing about who is near whom."""
    return F.normalize(vectors.float() - mean, dim=-1)


def nearest(units: Tensor, count: int, among: Tensor | None = None, exact: bool | None = None) -> Nearest:
    """The ``count`` nearest of each row of ``units``, (N, D), which have length 1: in ``among``, (M, D), or, where that
    is not given, among the other rows.

    Small sets are compared pair by pair, large ones by cells (see ``EXACT``), unless ``exact`` says which. A row that
    finds fewer than ``count`` others, which cells can cause, has a similarity of -1 in what is left.
    """
    others = units if among is None else among
    there = len(others) - (among is None)
    if not 1 <= count <= there:
        raise ValueError(f"{count} neighbours are asked for among {there} vectors, expected 1 to {there}.")
    if exact is None:
        exact = len(others) <= EXACT["cuda" if units.is_cuda else "cpu"]
    places = torch.zeros((len(units), count), dtype=torch.int64, device=units.device)
    similarity = torch.full((len(units), count), -1.0, device=units.device)
    for rows, candidates in _pairs(units, others, exact):
        found = units[rows] @ (others if candidates is None else others[candidates]).T
        if among is None:
            own = rows if candidates is None else _place_of(rows, candidates)
            found.scatter_(1, own[:, None], -torch.inf)
        best = found.topk(min(count, found.shape[1]))
        taken = best.indices if candidates is None else candidates[best.indices]
        places[rows, : taken.shape[1]] = taken
        similarity[rows, : taken.shape[1]] = best.values.clamp_min(-1)
    return Nearest(places, similarity)


def _pairs(units: Tensor, others: Tensor, exact: bool) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Rows, and whom they are compared with: everybody (None), or the members of the cells near them."""
    everyone, room = torch.arange(len(units), device=units.device), ROOM["cuda" if units.is_cuda else "cpu"]
    if exact:
        yield from ((rows, None) for rows in torch.split(everyone, max(room // len(others), 1)))
        return
    centres = _centres(others)
    # Vectors that are alike make centres that are alike, of which the first has all members. The others are dropped.
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
            yield from ((part, candidates) for part in torch.split(rows, max(room // len(candidates), 1)))


def _place_of(rows: Tensor, candidates: Tensor) -> Tensor:
    """Where each row stands among the candidates, which are sorted and hold it."""
    return torch.searchsorted(candidates, rows)


def _centres(units: Tensor) -> Tensor:
    """Means of as many cells as the root of the number of vectors, by k-means on the sphere."""
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
    rows = max(ROOM["cuda" if units.is_cuda else "cpu"] // len(centres), 1)
    return torch.cat([(part @ centres.T).argmax(-1) for part in torch.split(units, rows)])

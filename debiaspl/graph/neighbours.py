"""Nearest neighbours by cosine similarity, computed in blocks: the matrix of all pairs is never in memory."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

EXACT = {"cpu": 20_000, "cuda": 200_000}
"""Most vectors for which every pair is compared; of more, a vector is compared with those of the nearest cells."""
PROBED = 16
"""Nearest cells of each vector that are looked up at once."""
ENOUGH = 0.97
"""Share of the nearest that a search by cells finds at least, in a sample, so that it is .95 of all."""
MOST_COMPARED = {"cpu": 5 * 10**9, "cuda": 5 * 10**11}
"""Pairs after which a search by cells ends, whatever it has found: a minute or two."""
CHECKED = 400
"""Vectors of that sample."""
CLOSE = 1e-6
"""Cosines that differ less are equal."""
ROUNDS, CLUSTER_ROUNDS = 5, 20
"""Iterations of k-means that make cells, and clusters."""
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
    recall: float = 1.0
    """Share of the nearest that a search by cells found, of a sample of the vectors."""

    def first(self, count: int) -> "Nearest":
        """The ``count`` nearest of these, as a search for fewer would find them."""
        return Nearest(self.places[:, :count], self.similarity[:, :count], self.recall)

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
        return Nearest(places.gather(1, order), similarity.gather(1, order), self.recall)

    def weights(self) -> Tensor:
        """Weights of the edges, not normalised: cosine ** 3, 0 for negative cosines, float32, (N, k)."""
        return self.similarity.clamp_min(0).pow(POWER)


def directions(vectors: Tensor, mean: Tensor) -> Tensor:
    """Unit vectors, float32, relative to the mean: what all vectors share says nothing about distances."""
    return F.normalize(vectors.float() - mean, dim=-1)


def nearest(units: Tensor, count: int, among: Tensor | None = None, exact: bool | None = None) -> Nearest:
    """The ``count`` nearest rows for each row of ``units``, (N, D), which have length 1, in ``among``, (M, D), or by
    default in the others. Small sets are compared pair by pair, large ones by cells, which miss some neighbours, unless
    ``exact`` is given."""
    found = _Found(units, units if among is None else among, count, among is None)
    if exact is None:
        exact = len(found.others) <= EXACT["cuda" if units.is_cuda else "cpu"]
    if exact:
        found.compare(torch.arange(len(units), device=units.device))
    recall = 1.0 if exact else _search(found)
    return Nearest(found.places, found.similarity, recall)


class _Found:
    """The nearest so far of each row of ``units`` among ``others``. If these are the same rows, a row is not its own
    neighbour."""

    def __init__(self, units: Tensor, others: Tensor, count: int, same: bool) -> None:
        self.units, self.others, self.same = units, others, same
        self.places = torch.zeros((len(units), count), dtype=torch.int64, device=units.device)
        self.similarity = torch.full((len(units), count), -1.0, device=units.device)

    def compare(self, rows: Tensor, candidates: Tensor | None = None) -> None:
        """Compare these rows with the candidates, or with all others."""
        members = self.others if candidates is None else self.others[candidates]
        numbers = torch.arange(len(members), device=members.device) if candidates is None else candidates
        most = MOST_SIMILARITIES["cuda" if rows.is_cuda else "cpu"]
        for part in torch.split(rows, max(most // len(members), 1)):
            cosines = self.units[part] @ members.T
            if self.same:
                cosines.masked_fill_(part[:, None] == numbers, -torch.inf)
            closer = cosines.amax(1) > self.similarity[part, -1]
            if not bool(closer.all()):  # of a far cell most rows need nothing
                cosines, part = cosines[closer], part[closer]
            similarity, best = cosines.topk(min(self.places.shape[1], len(members)))
            merged = torch.cat((self.similarity[part], similarity), 1).topk(self.places.shape[1])
            self.places[part] = torch.cat((self.places[part], numbers[best]), 1).gather(1, merged.indices)
            self.similarity[part] = merged.values


def _search(found: _Found) -> float:
    """Compare each row with the members of the cell nearest to it, then of the next, until a sample has found enough
    of its nearest. Returns the share that it has found."""
    units, others = found.units, found.others
    centres = _centres(others)
    # Equal vectors make equal centres, of which the first gets all members. The others are dropped.
    centres = centres[torch.unique(_nearest_centres(others, centres)[:, 0])]
    home = _nearest_centres(others, centres)[:, 0]
    members = torch.split(home.argsort(stable=True), torch.bincount(home, minlength=len(centres)).tolist())
    some = _random(len(units), CHECKED, seed=1).to(units.device)  # others than the first centres, which find more
    exact = _Found(units, others, found.places.shape[1], found.same)
    exact.compare(some)
    least, recall, compared = exact.similarity[some, -1:] - CLOSE, 0.0, 0
    for cells in _by_nearness(units, centres):
        visitors = torch.split(cells.argsort(stable=True), torch.bincount(cells, minlength=len(centres)).tolist())
        for rows, candidates in zip(visitors, members, strict=True):
            if len(rows):
                found.compare(rows, candidates)
            compared += len(rows) * len(candidates)
        recall = float((found.similarity[some] >= least).float().mean())
        if recall >= ENOUGH or compared > MOST_COMPARED["cuda" if units.is_cuda else "cpu"]:
            break
    return recall


def _by_nearness(units: Tensor, centres: Tensor) -> Iterator[Tensor]:
    """The nearest cell of each row, then the second nearest, and so on."""
    for start in range(0, len(centres), PROBED):
        yield from _nearest_centres(units, centres, min(start + PROBED, len(centres)))[:, start:].T


def _centres(units: Tensor) -> Tensor:
    """Cell centres; the number of cells is the square root of the number of vectors."""
    cells = max(int(len(units) ** 0.5), 1)
    some = units[_random(len(units), SAMPLED * cells).to(units.device)]
    return _k_means(some, some[:cells], ROUNDS)


def _k_means(units: Tensor, centres: Tensor, rounds: int) -> Tensor:
    """Spherical k-means from these centres. A cluster that loses all members keeps its centre."""
    for _ in range(rounds):
        home = _nearest_centres(units, centres)[:, 0]
        counts = torch.bincount(home, minlength=len(centres))
        sums = torch.segment_reduce(units[home.argsort(stable=True)], "sum", lengths=counts)
        centres = torch.where(counts[:, None] > 0, F.normalize(sums, dim=-1), centres)
    return centres


@torch.no_grad()
def clusters(units: Tensor, count: int, seed: int = 0) -> Tensor:
    """Cluster number of each row of ``units``, (N, D), which have length 1: int64, (N,), below ``count``. The first
    centres are drawn by k-means++ (Arthur and Vassilvitskii, 2007), with a probability that grows with the squared
    distance to those drawn before."""
    generator = torch.Generator().manual_seed(seed)
    centres = units[torch.randint(len(units), (1,), generator=generator)]
    closest = torch.full((len(units),), -1.0, device=units.device)
    for _ in range(count - 1):
        closest = torch.maximum(closest, units @ centres[-1])
        distance = (2 - 2 * closest).clamp_min(0).cpu().double()
        distance = distance if float(distance.sum()) > 0 else torch.ones_like(distance)  # all vectors are equal
        centres = torch.cat((centres, units[torch.multinomial(distance, 1, generator=generator)]))
    return _nearest_centres(units, _k_means(units, centres, CLUSTER_ROUNDS))[:, 0]


def _random(size: int, count: int, seed: int = 0) -> Tensor:
    """Some of so many numbers; evenly spaced ones would miss classes that come in turn."""
    return torch.randperm(size, generator=torch.Generator().manual_seed(seed))[:count]


def _nearest_centres(units: Tensor, centres: Tensor, count: int = 1) -> Tensor:
    """The cells nearest to each row, the nearest first, (N, count)."""
    rows = max(MOST_SIMILARITIES["cuda" if units.is_cuda else "cpu"] // len(centres), 1)
    return torch.cat([(part @ centres.T).topk(count).indices for part in torch.split(units, rows)])

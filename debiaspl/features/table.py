"""A table of features, and what every fit of it shares. Features may be mapped into memory: they are read in parts."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from debiaspl.data import UNLABELED, Hints
from debiaspl.data.images import StoredImages
from debiaspl.graph import Graph, ridge_weights
from debiaspl.models import Scaling
from debiaspl.training.classifier import (
    MEANS,
    PROBE,
    RANDOM,
    SHARES,
    as_classifier,
    class_means,
    class_shares,
    probe,
    with_finite_bias,
)
from debiaspl.training.recipe import Recipe

CHUNK = 8192
UNIT_FROM = 64
"""From this number of columns on, features are treated as an embedding or pixels, whose columns have one unit."""


class FeatureTable:
    """Features of all rows, and what every fit of them shares: their scaling and, of the rows of the graph, the scaled
    features, the graph, and labels spread over it. Training sees all rows."""

    def __init__(self, features: Tensor, unit: bool | None = None, device: torch.device | None = None) -> None:
        """``features`` are finite floats, (N, D); they may be mapped into memory, as they are read in parts. With
        ``unit`` rows are divided by their length, for features that differ by their direction, as an encoder's;
        otherwise every column is divided by its deviation."""
        self.features, self.device = features, device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.scaling = Scaling.of(features, features.shape[1] >= UNIT_FROM if unit is None else unit)
        self.fit_on = 0
        self._spread: tuple[Tensor, Hints] | None = None
        self.chosen = torch.empty(0, dtype=torch.int64)
        """Numbers of the rows of the graph."""
        self.rows = torch.empty(0)
        """Their scaled features."""

    def __len__(self) -> int:
        return len(self.features)

    def sample(self, labels: Tensor, fit_on: int | None = None) -> Tensor:
        """Labels of the rows of the graph: of more than ``fit_on`` (or as before), all labeled ones and some others."""
        known, fit_on = (labels >= 0).cpu(), fit_on or self.fit_on or Recipe.fit_on
        if self.fit_on != fit_on or int(known[self.chosen].sum()) < int(known.sum()):
            if len(self) > fit_on:
                others = (~known).nonzero().flatten()
                order = torch.randperm(len(others), generator=torch.Generator().manual_seed(0))
                known[others[order[: max(fit_on - int(known.sum()), 0)]]] = True
                self.chosen = known.nonzero().flatten()
            else:
                self.chosen = torch.arange(len(self))
            self.fit_on, self._spread = fit_on, None
            self.__dict__.pop("graph", None)
            self.rows = torch.empty((len(self.chosen), self.features.shape[1]), device=self.device)
            for scaled, part in zip(torch.split(self.rows, CHUNK), torch.split(self.chosen, CHUNK), strict=True):
                scaled.copy_(self.scaling(self.features[part.to(self.features.device)]))
        return labels[self.chosen.to(labels.device)].to(self.device)

    @cached_property
    def graph(self) -> Graph:
        """The graph of the nearest neighbours; the search is the same for all labels."""
        return Graph.of(self.rows)

    @torch.no_grad()
    def spread(self, labels: Tensor, num_classes: int) -> Hints:
        """The most likely class of the rows of the graph, by labels of all rows, which spread over it; remembered for
        one set of labels, as several methods are fitted to the same ones."""
        own = self.sample(labels)
        if self._spread is None or not torch.equal(self._spread[0], own):
            confidence, label = self.from_copies(own, num_classes)
            self._spread = own.clone(), Hints(label.to(self.device), confidence.to(self.device))
        return self._spread[1]

    @torch.no_grad()
    def first_classifier(self, kind: str, labels: Tensor, num_classes: int) -> dict[str, Tensor]:
        """The weights that training begins with, by name."""
        if kind == RANDOM:
            return {}
        own = self.sample(labels)
        head = nn.Linear(self.rows.shape[1], num_classes, device="meta").to_empty(device=self.device)
        known = (own >= 0).nonzero().flatten()
        if kind == MEANS:
            return with_finite_bias(class_means(head, self.rows[known], own[known], self.rows.mean(0)))
        if kind == PROBE:
            return with_finite_bias(probe(head, self.rows[known], own[known]))
        label = torch.where(own >= 0, own, self.spread(labels, num_classes).label)
        # A given label counts twice: as a labeled row and as an unlabeled one, as in training.
        twice = torch.cat((known, torch.arange(len(own), device=self.device)))
        weights = ridge_weights(self.graph.units, label, num_classes, rows=twice)
        first = as_classifier(head, weights, self.rows, self.graph.mean)
        return with_finite_bias(first) | {SHARES: class_shares(label, num_classes)}

    def from_copies(self, own: Tensor, num_classes: int, masses: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Confidence and class of the rows of the graph. Labels spread from a copy of each labeled row, after all
        others, which is .4 points better than from the rows themselves: results/photos/copies.json."""
        known = (own >= 0).nonzero().flatten()
        given = torch.cat((torch.full_like(own, UNLABELED), own[known]))
        confidence, label = self.graph.with_copies(known).most_likely(given, num_classes, masses=masses)
        return confidence[: len(own)], label[: len(own)]


@dataclass(frozen=True, eq=False)
class ScaledRows(StoredImages):
    """Some rows of ``features``, (N, D), which may be mapped into memory; indexed like a tensor of scaled ones."""

    features: Tensor
    scaling: Scaling
    positions: Tensor
    dtype = torch.float32

    @property
    def device(self) -> torch.device:
        return self.features.device

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.positions), self.features.shape[1]

    def __getitem__(self, positions: Tensor) -> Tensor:
        return self.scaling(self.features[self.positions[positions]])

"""Which photos to label next: those that cover most of the photos that the model is unsure of (uncertainty herding,
arXiv 2412.20644), the more so the more labels it has. Without a model, those that cover most of all photos: the first
ones to label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.return_types import topk

from debiaspl.data import UNLABELED, DataError, ImageSet
from debiaspl.data.lazy import Progress
from debiaspl.data.text import csv_line
from debiaspl.deploy.labeled import UNCHECKED
from debiaspl.deploy.saved import SavedModel, chosen_folder
from debiaspl.features.coverage import NEIGHBOURS, Coverage
from debiaspl.features.shares import COVERAGE
from debiaspl.graph import Graph
from debiaspl.training import Run, RunError

STRENGTH = 0.5
MOST_SURE = 0.98
"""Mean confidence at most: few checked labels may all be right by luck."""
TINY = 1e-12
"""Replaces a probability of 0, whose logarithm would be infinite."""
SETTLED = 8
"""Labels a class from which the uncertainty counts in full; with fewer, its power is smaller: with one or two a class a
model is sure of what it has not seen, and coverage alone needs fewer labels."""
UNSURE = 0.5
"""A photo is called unsure from this uncertainty on."""
UNCERTAINTY = "uncertainty"
"""How a photo was chosen to be labeled, beside ``random`` and ``coverage``."""
UNLIKE = "unlike every labelled photo"

COLUMNS = ("file_name", "label", "asked", "predicted", "confidence", "why")
"""``label`` is empty, to be filled in."""


class Pick(NamedTuple):
    """A photo to label."""

    place: int
    asked: str
    why: str
    predicted: str = ""
    """The prediction of ``debiaspl predict``; empty without a model."""
    confidence: float | None = None
    """That of the same prediction. It is often too high; ``why`` is judged by corrected probabilities."""


class Learned(NamedTuple):
    """What is known of how a model was trained."""

    accuracy: float | None = None
    """How often it is right, if that was measured; its confidence is made to agree with it."""
    labels: int | None = None
    """Number of labels that it learned from, if that is known."""


UNKNOWN = Learned()


@dataclass(frozen=True, eq=False)
class Pool:
    """Photos of which some are to be labeled: their features, (N, D), and what a model predicts, if there is one."""

    features: Tensor
    probabilities: Tensor | None = None
    """Class probabilities, (N, C)."""
    classes: Sequence[str] = ()
    learned: Learned = UNKNOWN

    @cached_property
    def graph(self) -> Graph:
        return Graph.of(self.features, search=NEIGHBOURS)

    @cached_property
    def coverage(self) -> Coverage:
        return Coverage(self.graph.near)

    def choose(self, count: int, labels: Mapping[int, str | None]) -> list[Pick]:
        """``count`` photos, the most useful first; fewer, if there are fewer. ``labels`` are the positions of those
        that are not asked for, with their class, if it is known: similar photos are then less uncertain."""
        left = [place for place in range(len(self.features)) if place not in labels]
        if len(left) < 2:
            return [Pick(place, COVERAGE, "the only photo without a label") for place in left]
        unlike = ~self.coverage.reached(list(labels)) if labels else np.zeros(len(self.features), bool)
        if self.probabilities is None:
            order = self.coverage.order(count, list(labels)).tolist()
            return [Pick(place, COVERAGE, UNLIKE if unlike[place] else "typical of similar photos") for place in order]
        known = {place: label for place, label in labels.items() if label is not None}
        probabilities = with_given_labels(self.graph, self.probabilities, known, self.classes)
        best = two_best(probabilities, self.learned.accuracy)
        unsure = 1 - (best.values[:, 0] - best.values[:, 1]).numpy()
        learned, chosen = self.learned.labels, []
        power = 1.0 if learned is None else min(1.0, max(learned, len(known)) / (SETTLED * len(self.classes)))
        for place in self.coverage.order(count, list(labels), unsure**power).tolist():
            why = UNLIKE if unlike[place] else "typical of photos that the model is unsure of"
            if unsure[place] >= UNSURE:
                why = "unsure: " + " or ".join(self.classes[label] for label in best.indices[place].tolist())
            sure, label = self.probabilities[place].max(-1)
            chosen.append(Pick(place, UNCERTAINTY, why, self.classes[int(label)], float(sure)))
        return chosen


def with_given_labels(graph: Graph, probabilities: Tensor, labels: Mapping[int, str], classes: Sequence[str]) -> Tensor:
    """The model's probabilities, (N, C), combined with labels that were given after its training, by position.

    Labels spread over the nearest neighbours of the features. Among the classes that have one, the model's
    probabilities are multiplied by the spread ones; the total of these classes, and the probabilities of the others, do
    not change. Nothing changes if fewer than two of the model's ``classes`` have a label.
    """
    number = {name: place for place, name in enumerate(classes)}
    known = {place: number[label] for place, label in labels.items() if label in number}
    named = sorted(set(known.values()))
    if len(named) < 2:
        return probabilities
    given = torch.full((len(probabilities),), UNLABELED)
    given[list(known)] = torch.tensor(list(known.values()))
    found = probabilities.cpu().clone()
    own = found[:, named]
    both = own.clamp_min(TINY) * graph.spread(given, len(classes))[:, named].clamp_min(TINY)
    found[:, named] = both / both.sum(-1, keepdim=True) * own.sum(-1, keepdim=True)
    return found


def two_best(probabilities: Tensor, accuracy: float | None = None) -> topk:
    """Probabilities (``values``) and numbers (``indices``) of the two most likely classes of every image, (N, 2) each.

    Eq. 3 of the paper for all images at once; the prior is the mean of the probabilities themselves: otherwise images
    of a neglected class look like confident images of another. With ``accuracy``, a temperature makes the mean
    confidence equal to it."""
    own = probabilities.detach().double().cpu().clamp_min(TINY)
    scores = own.log() - STRENGTH * own.mean(0).log()
    low, high = -3.0, 3.0
    for _ in range(0 if accuracy is None else 30):
        middle = (low + high) / 2
        sure = float((scores / 2**middle).softmax(-1).amax(-1).mean()) > min(accuracy or 0, MOST_SURE)
        low, high = (middle, high) if sure else (low, middle)
    return (scores / 2 ** ((low + high) / 2)).softmax(-1).topk(2, dim=-1)


def learned_by(run: Path) -> Learned:
    """How often the model of a run was right where it was checked, and how many labels it learned from."""
    try:
        results = Run(chosen_folder(run)).results() or {}
    except RunError:
        return Learned()
    checked, counts = results.get("accuracy"), results.get("labels")
    unseen = (results.get("check") or {}).get("kind") not in UNCHECKED
    accuracy = float(checked) if isinstance(checked, float) and unseen else None
    return Learned(accuracy, sum(counts) if isinstance(counts, list) and counts else None)


SeenPool = tuple[list[int], Pool, dict[int, str]]
"""The numbers of the photos that can be read, a pool of them, and why others cannot."""


def see_pool(
    model: SavedModel,
    photos: ImageSet,
    rows: Sequence[int],
    watch: Progress,
    learned: Learned = UNKNOWN,
    features: Path | None = None,
) -> SeenPool:
    """What the model sees of these photos. ``watch`` is called with the number of photos done and the total."""
    read: list[int] = []
    parts: list[tuple[Tensor, Tensor]] = []
    bad: dict[int, str] = {}
    for seen in model.see(photos.select(rows), features=features):
        # Half precision is enough for distances, and 100,000 photos need half the memory.
        parts.append((seen.features.half().cpu(), seen.probabilities.cpu()))
        read += [rows[place] for place in seen.positions.tolist()]
        bad |= {rows[place]: why for place, why in seen.skipped.items()}
        watch(len(read) + len(bad), len(rows))
    values, probabilities = map(torch.cat, zip(*parts, strict=True))
    return read, Pool(values, probabilities, model.classes, learned), bad


@dataclass(frozen=True)
class Suggestions:
    """Photos to label next."""

    picked: dict[str, Pick]
    """By file, the most useful first."""
    unlabeled: int
    """Number of photos that could have been picked."""
    bad: dict[str, str]
    """Photos that could not be read -> reason."""

    def to_csv(self) -> str:
        rows = [COLUMNS]
        for file, one in self.picked.items():
            sure = "" if one.confidence is None else f"{one.confidence:.6f}"
            rows.append((file, "", one.asked, one.predicted, sure, one.why))
        return "".join(map(csv_line, rows))


def suggest(files: Sequence[str], seen: SeenPool, count: int, labeled: Mapping[str, str]) -> Suggestions:
    """The ``count`` photos whose labels would help most, of those that can be read. ``labeled`` ones, files with their
    class, are left out, and their labels are used for similar photos."""
    read, pool, skipped = seen
    names, bad = [files[position] for position in read], {files[position]: why for position, why in skipped.items()}
    taken = {place: labeled[file] for place, file in enumerate(names) if file in labeled}
    if len(taken) == len(names):
        what = "can be read" if bad and not names else "is without a label"
        raise DataError(f"no image {what}, so there is nothing to pick.")
    picked = {names[one.place]: one for one in pool.choose(count, taken)}
    return Suggestions(picked, len(names) - len(taken), bad)

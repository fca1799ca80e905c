"""How good a model of the labels so far is, what more labels would bring, and which labels look wrong.

Labels that were chosen by coverage are no random sample: a cross-check over them is too low, and the model's own
confidence is too high. So one photo in five is asked at random. What models that did not learn from these labels say of
them is unbiased; the mean of the cross-check and of the confidence counts as ten further labels of this kind.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from debiaspl._measures import exact_interval
from debiaspl.data import UNLABELED
from debiaspl.features.fit import LINEAR, TableTask, fit_recipe
from debiaspl.features.table import FeatureTable
from debiaspl.graph import directions, nearest
from debiaspl.training.method import with_method

FOLDS = 5
"""Of labels asked at random, and of the others: left out together, each would lack to the models of the other kind."""
QUICK = with_method(LINEAR.changed(first_classifier="graph", steps=50), "debiaspl")
"""Fits are short, without the second classifier for uneven classes: a fifth of the time, and a little less accurate."""
TRUST = 10
"""Labels asked at random that the model's own estimate counts as: with 50 labels it is often 5 points off."""
LEVEL = 0.9
MORE = 10
"""Labels whose gain is expected."""
CURVE = 1 / 3
"""The error falls with this power of the number of labels: by coverage .3 from 2 to 5 a class and .5 from 1 to 5
(results/photos/first_labels.json)."""
SAME = 1 - 1e-5
"""Photos whose features have this cosine are copies."""
CONFIDENT = 0.75
"""A model that is less sure does not contradict a label."""


class HeldOut(NamedTuple):
    """Labels, and what models that did not learn from them say of these rows; each (n,)."""

    rows: Tensor
    label: Tensor
    predicted: Tensor
    confidence: Tensor
    """Of the prediction; 0 where the model had no other label of the class to learn from."""

    @property
    def right(self) -> Tensor:
        return self.predicted == self.label


@dataclass(frozen=True)
class Estimate:
    """Of a model of all labels so far, on the photos without one."""

    labels: int
    accuracy: float
    low: float
    high: float
    """The ends of its 90 % interval."""
    gain: float
    """What ten more labels are expected to add to the accuracy."""
    few: tuple[int, ...]
    """Classes with too few labels: at most half of them are predicted by models that did not learn from them."""


def held_out(table: FeatureTable, labels: Tensor, at_random: Tensor) -> HeldOut:
    """Each label predicted by one of ten models that learn from the others; ``at_random``, (N,): asked at random."""
    rows = (labels >= 0).nonzero().flatten()
    table.sample(labels)
    held = HeldOut(rows, labels[rows], torch.zeros_like(rows), torch.zeros(len(rows)))
    fold, generator = torch.zeros_like(rows), torch.Generator().manual_seed(0)
    for first, own in ((0, at_random[rows]), (FOLDS, ~at_random[rows])):
        fold[own] = first + torch.randperm(int(own.sum()), generator=generator) % FOLDS
    for number in range(2 * FOLDS):
        out = fold == number
        if not out.any():
            continue
        known = labels.clone()
        known[rows[out]] = UNLABELED
        confidence, predicted = _predicted(table, known)
        held.predicted[out] = predicted[rows[out]]
        held.confidence[out] = confidence[rows[out]] * torch.isin(held.label[out], known)
    return held


def estimate(table: FeatureTable, labels: Tensor, num_classes: int, at_random: Tensor, held: HeldOut) -> Estimate:
    """The accuracy of a model of all ``labels``, on the rows without one; ``at_random`` and ``held`` are as above."""
    confidence = _predicted(table, labels)[0][labels < 0]
    right = held.right
    prior = (float(confidence.mean()) + float(right.double().mean())) / 2
    checked = at_random[held.rows]
    successes = TRUST * prior + int(right[checked].sum())
    total = TRUST + int(checked.sum())
    accuracy = successes / total
    gain = (1 - accuracy) * (1 - (len(right) / (len(right) + MORE)) ** CURVE)
    learned = torch.bincount(held.label[right], minlength=num_classes)
    few = (2 * learned <= torch.bincount(held.label, minlength=num_classes)).nonzero().flatten()
    return Estimate(len(right), accuracy, *exact_interval(successes, total, LEVEL), gain, tuple(few.tolist()))


def _predicted(table: FeatureTable, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Confidence and class of every row, by a model of these labels."""
    known = torch.bincount(labels[labels >= 0]).nonzero().flatten()
    if len(known) == 1:
        return torch.ones(len(table)), known.expand(len(table))
    own = torch.where(labels >= 0, torch.searchsorted(known, labels), UNLABELED)
    fitted = fit_recipe(QUICK, table, TableTask(own, tuple(map(str, known.tolist()))))
    confidence, predicted = fitted.predict(table.features)
    return confidence, known[predicted]


class Suspect(NamedTuple):
    """A label that looks wrong."""

    row: int
    other: int
    """The class that is more likely."""
    twin: bool = False
    """Whether that is the label of a copy of the photo."""


def suspects(features: Tensor, held: HeldOut) -> list[Suspect]:
    """Copies with two labels, then labels that the cross-check contradicts, the most confident first. ``features``,
    (N, D), are those of all rows. The only label of a class cannot be checked."""
    copies = twins(features, held.rows, held.label)
    wrong = ~held.right & (held.confidence > CONFIDENT)
    order = [at for at in held.confidence.argsort(descending=True, stable=True).tolist() if wrong[at]]
    seen = {one.row for one in copies}
    checked = [Suspect(int(held.rows[at]), int(held.predicted[at])) for at in order]
    return copies + [one for one in checked if one.row not in seen]


def twins(features: Tensor, rows: Tensor, label: Tensor) -> list[Suspect]:
    """Rows whose nearest one among the labeled ``rows`` is a copy with another label."""
    if len(rows) < 2:
        return []
    near = nearest(directions(features[rows], features.float().mean(0)), 1)
    other = label[near.places[:, 0]]
    found = ((near.similarity[:, 0] >= SAME) & (other != label)).nonzero().flatten()
    return [Suspect(int(rows[at]), int(other[at]), twin=True) for at in found.tolist()]

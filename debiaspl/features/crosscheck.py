"""Checks classifiers on labels that they did not learn from, and chooses between them by a paired test."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from debiaspl._measures import Cells, mcnemar
from debiaspl.data import UNLABELED
from debiaspl.data.task import fold_of
from debiaspl.features.fit import Fitted, TableTask, fit_recipe
from debiaspl.features.shares import CLASSES, PHOTOS
from debiaspl.features.table import FeatureTable
from debiaspl.training.recipe import Recipe

SUPERVISED, GRAPH = "supervised", "graph"
MEASURES = {PHOTOS: "accuracy", CLASSES: "mean over classes"}
"""By what models are judged, by what is optimised."""
SIGNIFICANT = 0.05
"""Two models differ significantly where chance alone would show as much less often than this."""

TEMPERATURES = torch.logspace(-2, 4, 61, base=2.0, dtype=torch.float64)
BINS = 10


@dataclass(frozen=True)
class Calibrated:
    """By what logits are divided, and how far confidence then is from accuracy."""

    temperature: float
    error: float
    """Mean distance of the confidence from the share that is right, in ten bins, of held-out labels."""
    before: float
    """The same at temperature 1."""
    labels: int


@dataclass(frozen=True)
class Candidate:
    """One of the models that learned from the same labels, as it was checked."""

    name: str
    confusion: Cells
    """Of the checked labels."""
    right_files: frozenset[str]
    """Which of them it predicts right."""
    mistakes: tuple[tuple[str, int, int], ...] = ()
    """The others: file, true class and predicted class; the most confident first."""
    optimise: str = PHOTOS
    """By what it is judged: the share of the labels that is right, or the mean of these shares over classes."""
    calibrated: Calibrated | None = None
    """Of its confidence, which may be changed so."""
    folder: str = ""
    """Its folder below that of the run; empty for the run itself."""

    @property
    def right(self) -> int:
        """Checked labels that it predicts right."""
        return int(self.confusion.right.sum())

    @property
    def checked(self) -> int:
        return self.confusion.images

    @property
    def measured(self) -> tuple[float, float, float]:
        """What it is judged by, 0 to 1, with its 95 % interval."""
        if self.optimise == PHOTOS:
            return self.confusion.accuracy, *self.confusion.interval
        counts = self.confusion.of_true[self.confusion.of_true > 0]
        recall = np.array([share for share in self.confusion.recall if share is not None])
        # A label more of each kind: of few labels that are all right, the next may be wrong.
        certain = (recall * counts + 1) / (counts + 2)
        error = 1.96 * float(np.sqrt((certain * (1 - certain) / counts).sum())) / len(counts)
        mean = float(recall.mean())
        return mean, max(mean - error, 0.0), min(mean + error, 1.0)

    def to_json(self, chosen: bool) -> dict[str, Any]:
        return {"name": self.name, "confusion": self.confusion.to_json(), "chosen": chosen}

    @property
    def header(self) -> tuple[str, ...]:
        """Of a table of candidates."""
        return "model", "right", "of", MEASURES[self.optimise], "95 % interval", "worst class"

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of a table."""
        if not self.checked:
            return self.name, "0", "0", "-", "-", "-"
        share, low, high = (f"{100 * part:.0f}" for part in self.measured)
        worst = min(recall for recall in self.confusion.recall if recall is not None)
        shares = f"{share} %", f"{low} to {high} %", f"{100 * worst:.0f} %"
        return self.name, f"{self.right:,}", f"{self.checked:,}", *shares


def paired(first: Candidate, second: Candidate) -> tuple[int, int, bool]:
    """How many labels only the first predicts right, and only the second, and whether that is significant."""
    more, less = (len(one.right_files - other.right_files) for one, other in ((first, second), (second, first)))
    return more, less, mcnemar(more, less) < SIGNIFICANT


def choose(candidates: Sequence[Candidate], checked: bool = True) -> Candidate:
    """The model that is used: the last of the candidates, which was the best on average over many sets of photos
    (results/photos), unless another one is significantly better on these labels."""
    preferred = candidates[-1]
    better = [one for one in candidates[:-1] if _beats(one, preferred)] if checked else []
    return max(better, key=lambda one: one.measured[0], default=preferred)


def _beats(one: Candidate, other: Candidate) -> bool:
    more, less, significant = paired(one, other)
    if one.optimise == PHOTOS:
        return more > less and significant
    # Every class counts the same, so a label counts as much as its class has few.
    share = 1 / np.maximum(one.confusion.of_true, 1)
    gain = [share[true] for name, true, _ in other.mistakes if name in one.right_files]
    loss = [share[true] for name, true, _ in one.mistakes if name in other.right_files]
    error = math.sqrt(sum(np.square(gain + loss)))
    return sum(gain) > sum(loss) and math.erfc((sum(gain) - sum(loss)) / error / math.sqrt(2)) < SIGNIFICANT


def crosscheck(recipes: Mapping[str, Recipe], table: FeatureTable, task: TableTask, folds: int) -> list[Candidate]:
    """Fit every recipe once for each fold, without its labels, and predict these labels. The only label of a class is
    always learned from, and so is not checked."""
    labels, first = task.labels, next(iter(recipes.values()))
    table.sample(labels, first.fit_on)
    fold = fold_of(labels, folds, first.seed)
    predicted = {name: torch.full_like(labels, UNLABELED) for name in recipes}
    sure = {name: torch.zeros(len(labels)) for name in recipes}
    parts: dict[str, list[tuple[Tensor, Fitted]]] = {name: [] for name in recipes}
    for number in range(folds):
        held_out = fold == number
        others = replace(task, labels=labels.masked_fill(held_out, UNLABELED))
        for name, recipe in recipes.items():
            fitted = fit_recipe(recipe, table, others)
            sure[name][held_out], predicted[name][held_out] = fitted.predict(table.features[held_out])
            parts[name].append((held_out.nonzero().flatten(), fitted))
    checked = (fold >= 0).nonzero().flatten()
    return [
        replace(
            compared(name, predicted[name], labels, checked, len(task.classes), task.ids, sure[name]),
            optimise=recipe.optimise or PHOTOS,
            calibrated=_calibrated(parts[name], table, task) if folds else None,
        )
        for name, recipe in recipes.items()
    ]


def _calibrated(parts: Sequence[tuple[Tensor, Fitted]], table: FeatureTable, task: TableTask) -> Calibrated:
    """Of the models of the folds, of those that know uneven shares if there are such, on the labels that were held out
    from them. What is optimised decides how much a label of each class counts: as its estimated share of the photos, or
    as that of any other class."""
    parts = [part for part in parts if part[1].shares is not None and part[1].shares.weight] or parts
    label = torch.cat([task.labels[rows] for rows, _ in parts]).cpu()
    scores = torch.cat([fitted.logits(table.features[rows]) for rows, fitted in parts])
    share = 1 / torch.bincount(label, minlength=len(task.classes)).clamp_min(1).double()
    known = [fitted.shares.estimate for _, fitted in parts if fitted.shares is not None]
    if known and parts[0][1].recipe.optimise == PHOTOS:
        share = share * torch.stack(known).mean(0)
    return calibrate(scores, label, share[label])


def calibrate(logits: Tensor, label: Tensor, weight: Tensor) -> Calibrated:
    """The temperature with the smallest cross-entropy of held-out labels, (N,). ``weight``, (N,), is how many rows each
    of them stands for; ``logits`` are (N, C), and may be logarithms of probabilities."""
    logits, weight = logits.double(), weight.double() / weight.double().sum()
    chosen = ((logits / t).log_softmax(-1).gather(-1, label[:, None])[:, 0] for t in TEMPERATURES)
    costs = [-(weight * log).sum() for log in chosen]
    best = float(TEMPERATURES[int(torch.stack(costs).argmin())])
    errors = [_error((logits / t).softmax(-1), label, weight) for t in (best, 1.0)]
    return Calibrated(round(best, 4), round(errors[0], 4), round(errors[1], 4), len(label))


def _error(probabilities: Tensor, label: Tensor, weight: Tensor) -> float:
    confidence, said = probabilities.max(-1)
    gap = weight * (confidence - (said == label).double())
    bins = (confidence * BINS).long().clamp_max(BINS - 1)
    return float(torch.zeros(BINS, dtype=torch.float64).index_add_(0, bins, gap).abs().sum())


def compared(
    name: str,
    predicted: Tensor,
    labels: Tensor,
    checked: Tensor,
    num_classes: int,
    ids: Sequence[str],
    sure: Tensor | None = None,
) -> Candidate:
    """A model by its predictions of the rows ``checked``; those of which it is most ``sure`` come first."""
    if sure is not None:
        checked = checked[sure[checked].argsort(descending=True, stable=True)]
    true, said = labels[checked], predicted[checked]
    confusion = Cells.of(true, said, num_classes)
    pairs = [(ids[row], *pair) for row, *pair in zip(checked.tolist(), true.tolist(), said.tolist(), strict=True)]
    right = frozenset(file for file, one, other in pairs if one == other)
    return Candidate(name, confusion, right, tuple(pair for pair in pairs if pair[1] != pair[2]))

"""Where class shares are uneven: the debiased fit beside a second classifier, which knows the shares.

The debiased fit treats all classes as equally frequent. The second one is a logistic regression on the surest labels of
a graph in which each class has the mass of its estimated share. They err differently, so their logits are added, as far
as the shares are certain to be uneven: of even ones, nothing changes. The sum is right for most photos (``photos``).
Without the logarithm of the shares every class counts the same (``classes``). Measured: results/photos/cells.json.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from debiaspl.features.logistic import MOST, logistic
from debiaspl.features.shares import ClassShares, count_shares, estimate, smoothed, some_unlabeled, typical_length

CHUNK = 8192
PHOTOS, CLASSES = "photos", "classes"
"""What is optimised: most photos right, or every class the same."""
SUREST = 0.6
"""The second classifier learns from this part of each class."""
Spread = Callable[[Tensor], tuple[Tensor, Tensor]]
FIRST = 1 / 3
"""Weight of the first one's logits, which are larger. Between .1 and .5 little changes."""


class Linear(NamedTuple):
    """A linear classifier of rows."""

    weight: Tensor
    bias: Tensor

    def predict(self, rows: Tensor) -> Tensor:
        parts = [(part.cpu() @ self.weight.T + self.bias).argmax(-1) for part in torch.split(rows, CHUNK)]
        return torch.cat(parts)


@torch.no_grad()
def blend(
    rows: Tensor, labels: Tensor, first: nn.Linear, spread: Spread, asked: Sequence[str] = (), seed: int = 0
) -> tuple[Linear, ClassShares]:
    """The classifier for ``photos``, and the shares of the rows without a label.

    Args:
        rows: the scaled rows that ``first`` was fitted to, (N, D).
        labels: int64, (N,); -1 for no label.
        first: the debiased fit, on the CPU.
        spread: confidence and class of every row by labels that spread over the graph, for these masses of the classes.
        asked: how each row was chosen to be labeled; see ``estimate``.
        seed: of the folds that the error of the shares is computed with.
    """
    classes, debiased = first.out_features, Linear(first.weight, first.bias)
    shares = estimate(rows, labels, debiased.predict, classes, asked, seed)
    if not shares.weight:
        return debiased, shares
    some = some_unlabeled(labels).to(rows.device)
    length = typical_length(rows)

    def second(of: Tensor) -> Linear:
        kept, label = surest(*spread(of), labels.cpu(), MOST // (rows.shape[1] * classes))
        weight, bias = logistic(rows[kept.to(rows.device)] / length, label[kept], classes)
        return Linear(weight / length, bias)

    # Once more, with the shares that both together count: half the error where labels are five of each class.
    counted = count_shares(_sum(debiased, second(shares.estimate), 1.0).predict(rows[some]), classes)
    shares = replace(shares, estimate=smoothed(counted, len(some)))
    return _sum(debiased, second(shares.estimate), shares.weight), shares


def _sum(first: Linear, second: Linear, weight: float) -> Linear:
    kept = 1 - weight * (1 - FIRST)
    return Linear(kept * first.weight + weight * second.weight, kept * first.bias + weight * second.bias)


def surest(confidence: Tensor, label: Tensor, given: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Numbers of the rows with the surest labels of each class, in all about ``most`` at the most, and the labels of
    all rows, of which those that were given are the surest."""
    label = torch.where(given >= 0, given, label)
    sure = torch.where(given >= 0, 2.0, confidence)
    order = sure.argsort(descending=True, stable=True)
    order = order[label[order].argsort(stable=True)]
    counts = torch.bincount(label)
    place = torch.arange(len(label)) - (counts.cumsum(0) - counts)[label[order]]
    part = min(SUREST, most / len(label))
    known = torch.bincount(label[given >= 0], minlength=len(counts))
    wanted = torch.maximum((part * counts).ceil().long(), known)
    return order[place < wanted[label[order]]], label

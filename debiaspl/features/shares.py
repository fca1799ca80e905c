"""Class shares of unlabeled rows: estimated, with an interval, and used where they are uneven.

    shares = estimate(rows, labels, predict, num_classes)
    shares.estimate, shares.interval(), shares.weight

Two classifiers that err differently are counted on the unlabeled rows: class-balanced logistic regression on the
labels, and the model that was fitted to all rows. Labels that were drawn at random count too, and rows that were chosen
to cover the others stand for their neighbours. To correct the counts by confusion on held-out labels made them worse.

The debiased fit treats all classes as equally frequent. ``blend`` adds the logits of a second classifier, as far as the
shares are certain to be uneven: a logistic regression on the surest labels of a graph in which each class has the mass
of its share. The sum is right for most photos (``photos``); without the logarithm of the shares every class counts the
same (``classes``). Measured: results/photos/cells.json.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor, nn

from debiaspl.data.task import fold_of
from debiaspl.graph import Linear, logistic

PHOTOS, CLASSES = "photos", "classes"
"""What is optimised: most photos right, or every class the same."""
RANDOM, COVERAGE = "random", "coverage"
"""How a row was chosen to be labeled: values of the column ``asked`` of a table of labels."""
FOLDS = 5
COUNTED = 20_000
"""Most unlabeled rows that are counted; of more, evenly spaced ones."""
CERTAIN = 2.0
"""Shares count as uneven as far as their squared distance from even ones exceeds that of their error so many times."""
FITS = 0.05
"""Labels fit shares where chance alone would show a larger distance more often than this."""
SUREST = 0.6
"""The second classifier learns from this part of each class."""
FIRST = 1 / 3
"""Weight of the first one's logits, which are larger. Between .1 and .5 little changes."""
TRUST = 30.0
"""Weight of the labels of a regression beside its penalty on the squared weights: within .3 points between 10 and 100
on EuroSAT and flowers20 with long tails."""
MOST = 2**28
"""Rows times columns times classes: what one pass of a regression may cost, some .1 s."""
CHUNK = 8192


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Class shares of unlabeled rows; tensors are float64, (C,)."""

    estimate: Tensor
    error: Tensor
    """Standard errors."""
    weight: float = 0.0
    """How certain it is that they are uneven: 0 where even shares explain them, near 1 where nothing else does."""

    @classmethod
    def even(cls, num_classes: int) -> "ClassShares":
        """Where nothing is known: each share may be anything."""
        every = torch.full((num_classes,), 1 / num_classes, dtype=torch.float64)
        return cls(every, torch.full_like(every, sqrt((1 - 1 / num_classes) / num_classes)))

    def interval(self) -> tuple[Tensor, Tensor]:
        """About 95 % of the true shares lie between these."""
        reach = 1.96 * self.error
        return (self.estimate - reach).clamp_min(0), (self.estimate + reach).clamp_max(1)

    def log(self) -> Tensor:
        """What is added to the logits of a classifier for even classes: the logarithm times ``weight``, of mean 0."""
        log = self.estimate.log()
        return self.weight * (log - log.mean())


@torch.no_grad()
def estimate(
    rows: Tensor,
    labels: Tensor,
    predict: Callable[[Tensor], Tensor],
    num_classes: int,
    asked: Sequence[str] = (),
    seed: int = 0,
) -> ClassShares:
    """Class shares of the rows without a label.

    Args:
        rows: (N, D), relative to their mean.
        labels: int64, (N,); -1 for no label.
        predict: what a model that was fitted to these rows says of some of them.
        num_classes: number of classes.
        asked: how each row was chosen to be labeled: ``random``, ``coverage``, something else, or empty if unknown.
        seed: seed of the folds that the error is computed with.
    """
    known, others = (labels >= 0).nonzero().flatten().cpu(), some_unlabeled(labels)
    true, fold = labels.cpu()[known], fold_of(labels, FOLDS, seed)[known]
    too_large = len(known) * rows.shape[1] * num_classes > MOST
    if not len(others) or 2 * int((fold >= 0).sum()) < len(true) or too_large:
        return ClassShares.even(num_classes)
    length = typical_length(rows)
    given, unlabeled = (rows[part.to(rows.device)].float().cpu() / length for part in (known, others))
    counted, variance = _of_regression(given, true, fold, unlabeled, num_classes)
    estimates = [counted, count_shares(predict(rows[others.to(rows.device)]), num_classes)]
    how = [asked[row] for row in known.tolist()] if asked else [""] * len(known)
    if 2 * how.count(COVERAGE) > len(how):
        estimates.append(count_shares(true[_nearest(unlabeled, given)], num_classes))
    mean = torch.stack(estimates).mean(0)
    variance += (torch.stack(estimates) - mean).square().sum(0) / (len(estimates) * (len(estimates) - 1))
    mean = smoothed(mean, len(others))
    variance += mean * (1 - mean) / len(others)
    drawn = true[torch.tensor([one == RANDOM for one in how])]
    if not any(how) and _seem_drawn(true, mean, variance):
        drawn = true
    if len(drawn):
        mean, variance = _with_labels(mean, variance, count_shares(drawn, num_classes), len(drawn))
    return certain(mean, variance)


def certain(share: Tensor, variance: Tensor) -> ClassShares:
    """These shares, and how certain it is that they are uneven."""
    uneven = float((share - 1 / len(share)).square().sum())
    weight = max(0.0, 1 - CERTAIN * float(variance.sum()) / uneven) if uneven else 0.0
    return ClassShares(share, variance.sqrt(), weight)


def some_unlabeled(labels: Tensor) -> Tensor:
    """Row numbers of those without a label; of too many, evenly spaced ones."""
    rows = (labels < 0).nonzero().flatten().cpu()
    return rows[:: max(-(-len(rows) // COUNTED), 1)]


def typical_length(rows: Tensor) -> float:
    return max(sqrt(sum(float(part.double().square().sum()) for part in torch.split(rows, CHUNK)) / len(rows)), 1e-12)


def smoothed(share: Tensor, rows: int) -> Tensor:
    """One row more of each class: no class has a share of 0."""
    return (share * rows + 1) / (rows + len(share))


def count_shares(label: Tensor, num_classes: int) -> Tensor:
    return torch.bincount(label, minlength=num_classes).double() / len(label)


def _of_regression(
    given: Tensor, true: Tensor, fold: Tensor, unlabeled: Tensor, num_classes: int
) -> tuple[Tensor, Tensor]:
    """Shares that a regression on the labels counts, and their variance: the jackknife over parts of the labels."""
    # Its weights lie in the space of the labeled rows, which has fewer dimensions.
    basis, own = torch.linalg.qr(given.T)
    own, unlabeled = own.T.contiguous(), unlabeled @ basis
    whole = logistic(own, true, num_classes, TRUST, balanced=True)
    kept = [fold != number for number in range(FOLDS)]
    parts = [logistic(own[rows], true[rows], num_classes, TRUST, True, whole) for rows in kept]
    shares, *made = (count_shares(one.predict(unlabeled), num_classes) for one in (whole, *parts))
    spread = torch.stack(made)
    return shares, (FOLDS - 1) / FOLDS * (spread - spread.mean(0)).square().sum(0)


def _nearest(rows: Tensor, among: Tensor) -> Tensor:
    among = torch.nn.functional.normalize(among, dim=-1)
    return torch.cat([(part @ among.T).argmax(-1) for part in torch.split(rows, CHUNK)])


def _seem_drawn(true: Tensor, share: Tensor, variance: Tensor) -> bool:
    """Whether labels could be a random draw: not as even as by hand, and as many of each class as estimated."""
    from scipy.special import chdtr, chdtrc

    size, total = len(share), len(true)
    counts = torch.bincount(true, minlength=size).double()
    by_hand = chdtr(size - 1, float((counts - total / size).square().sum()) * size / total) < FITS
    apart = float(((counts - total * share).square() / (total * share + total**2 * variance)).sum())
    return bool(not by_hand and chdtrc(size - 1, apart) > FITS)


def _with_labels(share: Tensor, variance: Tensor, drawn: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Pooled with the shares of ``count`` labels that were drawn at random, by their precision."""
    own = share * (1 - share) / count
    weight = float(variance.sum() / (variance + own).sum())
    return share + weight * (drawn - share), (1 - weight) ** 2 * variance + weight**2 * own


@torch.no_grad()
def blend(
    rows: Tensor,
    labels: Tensor,
    first: nn.Linear,
    spread: Callable[[Tensor], tuple[Tensor, Tensor]],
    asked: Sequence[str] = (),
    seed: int = 0,
) -> tuple[Linear, ClassShares]:
    """The classifier for ``photos``, and the shares of the rows without a label; arguments as of ``estimate``. The
    debiased fit, ``first``, was fitted to these scaled rows. ``spread`` gives confidence and class of every row by
    labels that spread over the graph, for these masses of the classes."""
    classes, debiased = first.out_features, Linear(first.weight, first.bias)
    shares = estimate(rows, labels, debiased.predict, classes, asked, seed)
    if not shares.weight:
        return debiased, shares
    some = some_unlabeled(labels).to(rows.device)
    length = typical_length(rows)

    def second(of: Tensor) -> Linear:
        kept, label = surest(*spread(of), labels.cpu(), MOST // (rows.shape[1] * classes))
        fitted = logistic(rows[kept.to(rows.device)].cpu() / length, label[kept], classes, TRUST)
        return fitted._replace(weight=fitted.weight / length)

    # Once more, with the shares that both together count: half the error where labels are five of each class.
    # Two classifiers for even classes count too evenly, so the certainty is that of these shares too.
    counted = count_shares(_sum(debiased, second(shares.estimate), 1.0).predict(rows[some]), classes)
    shares = certain(smoothed(counted, len(some)), shares.error.square())
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

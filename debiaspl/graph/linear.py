"""Linear classifiers of vectors: ridge regression on spread labels, logistic regression, and the linear probe of CLIP
(Radford et al., 2021), a logistic regression whose penalty a few held-out labels choose."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

DECAY = 0.003
"""Ridge penalty, relative to the number of labels: within 0.3 points of the best of five on three sets of features with
four labels per class (results/graph/search.json)."""
CHUNK = 8192
MOST_TARGETS = 2**25
"""Numbers of one-hot labels in memory at the same time."""
SHOTS = 4
"""Most labels of a class that the probe holds out."""
LARGEST = 6
"""It tries inverse penalties from 10^-6 to 10^6."""
ROUNDS = 8
"""Bisections between the neighbours of the best power of 100."""
ITERATIONS = 200


@torch.no_grad()
def ridge_weights(
    units: Tensor, label: Tensor, num_classes: int, decay: float = DECAY, rows: Tensor | None = None
) -> Tensor:
    """Weights, float32, (C, D): ``units @ weights.T`` is near 1 - 1/C for the class of a row and near -1/C elsewhere.

    Minimises the squared error over rows, with equal weight for every class, plus ``decay`` times the number of rows
    times the squared weights. A class without a row is never predicted.

    Args:
        units: rows of about length 1, relative to their mean, (N, D).
        label: int64, (N,); -1 for none.
        rows: numbers of the rows that count, some more than once; by default all that have a label.
    """
    rows = (label >= 0).nonzero().flatten() if rows is None else rows
    counts = torch.bincount(label[rows], minlength=num_classes)
    share = len(rows) / ((counts > 0).sum() * counts.clamp_min(1))
    if len(rows) <= units.shape[1]:  # less work with an equation for each row than for each column
        root = share[label[rows]].sqrt()[:, None].double()
        own = units[rows].double() * root
        kernel = own @ own.T
        kernel.diagonal().add_(decay * len(rows))
        target = _targets(label[rows], num_classes) * root
        weights: Tensor = own.T @ torch.cholesky_solve(target, torch.linalg.cholesky(kernel))
        return weights.T.float().contiguous()
    square = torch.zeros((units.shape[1],) * 2, dtype=torch.float64, device=units.device)
    target = torch.zeros((units.shape[1], num_classes), dtype=torch.float64, device=units.device)
    for part in torch.split(rows, min(CHUNK, max(MOST_TARGETS // num_classes, 1))):
        own = units[part]
        weighed = own * share[label[part]][:, None]
        square += (weighed.T @ own).double()
        target += weighed.T @ _targets(label[part], num_classes).to(own.dtype)
    square.diagonal().add_(decay * len(rows))
    weights = torch.linalg.solve(square, target)
    return weights.T.float().contiguous()


def _targets(label: Tensor, num_classes: int) -> Tensor:
    """One-hot labels minus 1 / C, float32, (N, C)."""
    targets = torch.zeros((len(label), num_classes), device=label.device)
    return targets.scatter_(1, label[:, None], 1).sub_(1 / num_classes)


class Linear(NamedTuple):
    """A linear classifier."""

    weight: Tensor
    """(C, D)."""
    bias: Tensor

    def predict(self, rows: Tensor) -> Tensor:
        weight, bias = self
        return torch.cat([(part.to(weight) @ weight.T + bias).argmax(-1) for part in torch.split(rows, CHUNK)])


@torch.no_grad()
def logistic(
    rows: Tensor, label: Tensor, num_classes: int, cost: float, balanced: bool = False, start: Linear | None = None
) -> Linear:
    """Minimises ``cost`` times the summed cross-entropy plus half of the squared weights, by L-BFGS; biases have no
    penalty. ``balanced`` gives every class the same total weight; ``start`` solves a similar problem."""
    counts = torch.bincount(label, minlength=num_classes)
    every = len(label) / (int((counts > 0).sum()) * counts.clamp_min(1)) if balanced else torch.ones_like(counts)
    share, true = (every.to(rows) / len(label))[label, None], label[:, None]
    both = rows.new_zeros((num_classes, rows.shape[1] + 1))
    if start is not None:
        both = torch.cat((start.weight, start.bias[:, None]), 1)
    weights, bias, penalty = both[:, :-1], both[:, -1], 1 / (cost * len(label))

    def loss() -> Tensor:
        chance = torch.addmm(bias, rows, weights.T).log_softmax(-1)
        total = -(share * chance.gather(1, true)).double().sum() + penalty * weights.double().square().sum() / 2
        slope = chance.exp_()
        slope.scatter_add_(1, true, torch.full_like(share, -1.0))
        slope *= share
        both.grad = torch.cat((slope.T @ rows + penalty * weights, slope.sum(0)[:, None]), 1)
        return total

    # scipy's takes seven times as long for a hundred classes.
    search = torch.optim.LBFGS(
        [both], max_iter=ITERATIONS, tolerance_grad=1e-7, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )
    search.step(loss)  # type: ignore[no-untyped-call]  # torch leaves it without types
    return Linear(weights.contiguous(), bias.contiguous())


def probe_weights(features: Tensor, label: Tensor, num_classes: int) -> Linear:
    """A logistic regression with a bias of minus infinity for a class without a row.

    For its cost, up to four labels of each class, but at most half of them, are held out; the best power of 100 is
    refined by bisection of its logarithm. Then all labels are fitted. If every class has one label, the cost is 1.
    """
    rows = features.double()
    present, own = torch.unique(label, return_inverse=True)
    held_out = held_out_shots(own)
    cost = _best_cost(rows, own, held_out) if held_out.any() else 0.0
    fitted = logistic(rows, own, len(present), 10**cost)
    weight = torch.zeros((num_classes, rows.shape[1]), device=rows.device)
    bias = torch.full((num_classes,), -torch.inf, device=rows.device)
    weight[present], bias[present] = fitted.weight.float(), fitted.bias.float()
    return Linear(weight, bias)


def held_out_shots(label: Tensor) -> Tensor:
    """Which rows are held out: the last ones of each class."""
    members = F.one_hot(label)
    later = members.flip(0).cumsum(0).flip(0).gather(1, label[:, None])[:, 0]
    return later <= (members.sum(0) // 2).clamp_max(SHOTS)[label]


def _best_cost(rows: Tensor, label: Tensor, held_out: Tensor) -> float:
    """The base-10 logarithm of the cost; of equally good ones, the smallest."""
    known: dict[float, float] = {}

    def accuracy(cost: float) -> float:
        if cost not in known:
            fitted = logistic(rows[~held_out], label[~held_out], int(label.max()) + 1, 10**cost)
            known[cost] = float((fitted.predict(rows[held_out]) == label[held_out]).double().mean())
        return known[cost]

    coarse = [float(power) for power in range(-LARGEST, LARGEST + 1, 2)]
    best = max(coarse, key=accuracy)
    low, high = max(best - 1, -LARGEST), min(best + 1, LARGEST)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if accuracy(low) < accuracy(high) else (low, middle)
    return max(sorted(known), key=accuracy)

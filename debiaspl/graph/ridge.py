"""A linear classifier of propagated labels, in closed form: it smooths out their errors."""

import torch
from torch import Tensor

DECAY = 0.003
"""Ridge penalty, relative to the number of labels: within 0.3 points of the best of five on three sets of features with
four labels per class (results/graph/search.json)."""
CHUNK = 8192
MOST_TARGETS = 2**25
"""Numbers of one-hot labels in memory at the same time."""


@torch.no_grad()
def ridge_weights(
    units: Tensor, label: Tensor, num_classes: int, decay: float = DECAY, rows: Tensor | None = None
) -> Tensor:
    """Weights, float32, (C, D): ``units @ weights.T`` is near 1 - 1/C for the class of a row and near -1/C elsewhere.

    Minimises the squared error over rows, with equal weight for every class, plus ``decay`` times the number of rows
    times the squared weights.

    Args:
        units: rows of about length 1, relative to their mean, (N, D).
        label: int64, (N,); rows of -1 are left out.
        num_classes: number of classes; one without a row is never predicted.
        decay: strength of the penalty on the weights.
        rows: numbers of the rows that count, some more than once; by default all that have a label.
    """
    rows = (label >= 0).nonzero().flatten() if rows is None else rows
    counts = torch.bincount(label[rows], minlength=num_classes)
    present = int((counts > 0).sum())
    if present == 0:
        raise ValueError("no row has a label, expected at least one.")
    share = len(rows) / (present * counts.clamp_min(1))
    if len(rows) <= units.shape[1]:  # an equation for each row is less work than one for each column
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

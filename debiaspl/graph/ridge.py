"""A linear classifier of graph labels, in closed form: it smooths over their mistakes."""

import torch
import torch.nn.functional as F
from torch import Tensor

DECAY = 0.003
"""Ridge, relative to the number of labels: within 0.3 points of the best of five on three sets of features, four labels
a class (results/graph/search.json)."""
CHUNK = 8192


@torch.no_grad()
def ridge_weights(units: Tensor, label: Tensor, num_classes: int, decay: float = DECAY) -> Tensor:
    """Weights, float32, (C, D): ``units @ weights.T`` is near 1 - 1/C for the class of a row and near -1/C elsewhere.

    Minimises the squared error over rows, where every class counts alike however many rows it has, plus ``decay`` times
    the number of rows times the squared weights.

    Args:
        units: rows of about length 1, seen from their mean, (N, D).
        label: int64, (N,); rows of -1 are left out.
        num_classes: a class without a row has weights of which no row makes the largest.
        decay: how much weights are held back.
    """
    rows = (label >= 0).nonzero().flatten()
    counts = torch.bincount(label[rows], minlength=num_classes)
    present = int((counts > 0).sum())
    if present == 0:
        raise ValueError("no row has a label, expected one or more.")
    share = len(rows) / (present * counts.clamp_min(1))
    square = torch.zeros((units.shape[1],) * 2, dtype=torch.float64, device=units.device)
    target = torch.zeros((units.shape[1], num_classes), dtype=torch.float64, device=units.device)
    for part in torch.split(rows, CHUNK):
        own = units[part]
        weighed = own * share[label[part]][:, None]
        square += (weighed.T @ own).double()
        target += (weighed.T @ (F.one_hot(label[part], num_classes) - 1 / num_classes).to(own.dtype)).double()
    square.diagonal().add_(decay * len(rows))
    weights: Tensor = torch.linalg.solve(square, target)
    return weights.T.float().contiguous()

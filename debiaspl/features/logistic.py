"""Logistic regression, plain or class-balanced, on rows of about length 1, by L-BFGS."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

TRUST = 30.0
"""Weight of the labels beside the penalty on the squared weights: within .3 points between 10 and 100 on EuroSAT and
flowers20 with long tails."""
ITERATIONS = 100
MOST = 2**28
"""Rows times columns times classes: what one pass may cost, some .1 s."""


@torch.no_grad()
def logistic(
    rows: Tensor, label: Tensor, num_classes: int, balanced: bool = False, start: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Weights, (C, D), and bias, (C,), float32, on the CPU.

    Minimises ``TRUST`` times the summed cross-entropy plus half of the squared weights; ``balanced`` gives every class
    the same total weight. ``start`` are weights and bias of a similar problem.
    """
    from scipy.optimize import minimize

    rows, label = rows.float().cpu(), label.cpu()
    counts = torch.bincount(label, minlength=num_classes)
    every = len(label) / (int((counts > 0).sum()) * counts.clamp_min(1)) if balanced else torch.ones(num_classes)
    weight = TRUST * every[label][:, None]
    true = label[:, None]
    size = num_classes * rows.shape[1]

    def cost(flat: Any) -> tuple[float, Any]:
        values = torch.from_numpy(flat).float()
        weights, bias = values[:size].view(num_classes, -1), values[size:]
        chance = torch.addmm(bias, rows, weights.T).log_softmax(-1)
        loss = -(weight * chance.gather(1, true)).double().sum() + weights.double().square().sum() / 2
        slope = chance.exp_()
        slope.scatter_add_(1, true, torch.full_like(weight, -1.0))
        slope *= weight
        steep = torch.cat(((slope.T @ rows + weights).flatten(), slope.sum(0)))
        return float(loss), steep.double().numpy()

    first = np.zeros(size + num_classes)
    if start is not None:
        first = torch.cat([part.flatten() for part in start]).double().numpy()
    found = torch.from_numpy(minimize(cost, first, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x)
    return found[:size].view(num_classes, -1).float(), found[size:].float()

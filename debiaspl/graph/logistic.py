"""CLIP's linear probe (Radford et al., 2021): a logistic regression, whose penalty a few held-out labels choose."""

import torch
import torch.nn.functional as F
from torch import Tensor

SHOTS = 4
"""Most labels of a class that are held out."""
LARGEST = 6
"""Inverse penalties from 10^-6 to 10^6 are tried."""
ROUNDS = 8
"""Bisections between the neighbours of the best power of 100."""
ITERATIONS = 200


def probe_weights(features: Tensor, label: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Weights, (C, D), and biases, (C,): minus infinity for a class without a row.

    Minimises ``|W|^2 / 2 + c * sum of cross-entropies`` by L-BFGS. For c, up to four labels of each class, but at most
    half of them, are held out; the best power of 100 is refined by bisection of its logarithm. Then all labels are
    fitted. If every class has one label, c is 1.
    """
    rows = features.double()
    present, own = torch.unique(label, return_inverse=True)
    held_out = held_out_shots(own)
    cost = _best_cost(rows, own, held_out) if held_out.any() else 0.0
    fitted = logistic(rows, own, 10**cost)
    weight = torch.zeros((num_classes, rows.shape[1]), device=rows.device)
    bias = torch.full((num_classes,), -torch.inf, device=rows.device)
    weight[present], bias[present] = fitted[:, :-1].float(), fitted[:, -1].float()
    return weight, bias


def held_out_shots(label: Tensor) -> Tensor:
    """Which rows are held out: the last ones of each class."""
    members = F.one_hot(label)
    later = members.flip(0).cumsum(0).flip(0).gather(1, label[:, None])[:, 0]
    return later <= (members.sum(0) // 2).clamp_max(SHOTS)[label]


def _best_cost(rows: Tensor, label: Tensor, held_out: Tensor) -> float:
    """The base-10 logarithm of c; of equally good ones, the smallest."""
    known: dict[float, float] = {}

    def accuracy(cost: float) -> float:
        if cost not in known:
            weights = logistic(rows[~held_out], label[~held_out], 10**cost)
            predicted = (rows[held_out] @ weights[:, :-1].T + weights[:, -1]).argmax(-1)
            known[cost] = float((predicted == label[held_out]).double().mean())
        return known[cost]

    coarse = [float(power) for power in range(-LARGEST, LARGEST + 1, 2)]
    best = max(coarse, key=accuracy)
    low, high = max(best - 1, -LARGEST), min(best + 1, LARGEST)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if accuracy(low) < accuracy(high) else (low, middle)
    return max(sorted(known), key=accuracy)


@torch.enable_grad()
def logistic(rows: Tensor, label: Tensor, cost: float) -> Tensor:
    """Weights and, in the last column, biases, which have no penalty."""
    weights = rows.new_zeros((int(label.max()) + 1, rows.shape[1] + 1), requires_grad=True)
    scale = 1 / (cost * len(rows))
    optimiser = torch.optim.LBFGS(
        [weights], max_iter=ITERATIONS, tolerance_grad=1e-7, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        logits = rows @ weights[:, :-1].T + weights[:, -1]
        total = F.cross_entropy(logits, label) + scale * weights[:, :-1].square().sum() / 2
        total.backward()  # type: ignore[no-untyped-call]  # torch leaves it without types
        return total

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return weights.detach()

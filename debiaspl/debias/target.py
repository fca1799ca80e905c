"""The shares of the classes that a correction aims at: written out, or estimated during training."""

from collections.abc import Sequence

import torch
from torch import Tensor

from debiaspl.debias.correction import checked_counts

UNIFORM, LABELS = "uniform", "labels"
FEW = 5.0
"""With this many labels a class an estimate counts as much as equal shares."""
LEAST = 0.01
"""The smallest share of kept labels, in equal shares: a class of which none is kept for a while can come back."""


def shares_of(target: str | Sequence[float], class_counts: Sequence[int], *others: str) -> Tensor:
    """The shares that ``target`` names, (C,), in float32; ``others`` are further names that are expected."""
    classes = len(class_counts)
    if target == UNIFORM:
        return torch.full((classes,), 1 / classes)
    if target == LABELS:
        counts = checked_counts(class_counts)
        return counts / counts.sum()
    try:
        values = [float(share) for share in (target.split(",") if isinstance(target, str) else target)]
    except (TypeError, ValueError):
        values = []
    if len(values) != classes or not all(0 <= value < float("inf") for value in values) or not sum(values):
        names = ", ".join(map(repr, (LABELS, UNIFORM, *others)))
        raise ValueError(
            f"target is {target!r}, expected {names} or {classes} shares >= 0, one per class, separated by commas."
        )
    shares = torch.tensor(values, dtype=torch.float64)
    return (shares / shares.sum()).float()


def log_kept(shares: Tensor) -> Tensor:
    """Their logarithm, from ``LEAST`` equal shares on."""
    return shares.clamp_min(LEAST / len(shares)).log()


def trust(class_counts: Sequence[int]) -> float:
    """How much an estimate counts beside equal shares, 0 to 1. With few labels the predictions that are counted are
    wrong together, and an estimate from them makes them more so."""
    per_class = sum(class_counts) / len(class_counts)
    return per_class / (per_class + FEW)


def towards_equal(shares: Tensor, weight: float) -> Tensor:
    """The estimate with this weight, and equal shares with the rest."""
    return shares.lerp(torch.full_like(shares, 1 / len(shares)), 1 - weight)

"""Confidence that means what it says: one temperature, chosen on labels that were held out."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def calibrate(logits: Tensor, label: Tensor, weight: Tensor) -> Calibrated:
    """The temperature with the smallest cross-entropy of held-out labels, (N,). ``weight``, (N,), is how many rows each
    of them stands for; ``logits`` are (N, C), and may be logarithms of probabilities."""
    logits, weight = logits.double(), weight.double() / weight.double().sum()
    costs = [-(weight * _chosen((logits / t).log_softmax(-1), label)).sum() for t in TEMPERATURES]
    best = float(TEMPERATURES[int(torch.stack(costs).argmin())])
    errors = [_error((logits / t).softmax(-1), label, weight) for t in (best, 1.0)]
    return Calibrated(round(best, 4), round(errors[0], 4), round(errors[1], 4), len(label))


def _chosen(values: Tensor, label: Tensor) -> Tensor:
    return values.gather(-1, label[:, None]).squeeze(-1)


def _error(probabilities: Tensor, label: Tensor, weight: Tensor) -> float:
    confidence, said = probabilities.max(-1)
    gap = weight * (confidence - (said == label).double())
    bins = (confidence * BINS).long().clamp_max(BINS - 1)
    return float(torch.zeros(BINS, dtype=torch.float64).index_add_(0, bins, gap).abs().sum())

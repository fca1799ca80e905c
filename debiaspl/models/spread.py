"""Measures of how features are distributed, without labels: they show whether features carry information."""

import torch
import torch.nn.functional as F
from torch import Tensor


def effective_rank(features: Tensor) -> float:
    """Number of directions that the features use: exp(H(p)), where p are the singular values of the centred features
    over their sum, and H is the entropy in nats (Roy and Vetterli, 2007). At most the smaller of N - 1 and D for
    features (N, D), and 0 if all are equal."""
    centred = features.double() - features.double().mean(0)
    # Squares of the singular values, from the smaller of the two products: much faster than the singular values.
    product = centred @ centred.T if len(centred) < centred.shape[1] else centred.T @ centred
    values = torch.linalg.eigvalsh(product).clamp_min(0).sqrt()
    if not bool(values.any()):
        return 0.0
    return float(torch.special.entr(values / values.sum()).sum().exp())


def spread(features: Tensor) -> float:
    """Standard deviation of features of length 1, averaged over dimensions, times sqrt(D) (Chen and He, 2021): 1 if
    they are spread evenly in all directions, 0 if all are equal."""
    unit = _unit(features)
    return float(unit.std(0, correction=0).mean() * unit.shape[1] ** 0.5)


def _unit(features: Tensor) -> Tensor:
    return F.normalize(features.double(), dim=-1)

"""Measures of how features are distributed, without labels: they show whether features carry information."""

import torch
import torch.nn.functional as F
from torch import Tensor

ROUNDING = 1e-9
"""Smallest sum of squared distances that counts as a distance."""


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


def alignment(first: Tensor, second: Tensor) -> float:
    """Mean squared distance of the features of two views of each image, at length 1 (Wang and Isola, 2020): 0 if the
    views have equal features."""
    return float((_unit(first) - _unit(second)).square().sum(-1).mean())


def overlap(first: Tensor, second: Tensor) -> float:
    """Mean squared distance of two views of one image, relative to that of views of two images, at length 1: 0 if
    features depend only on the image, 1 if views of one image are as far apart as views of two."""
    one, other = _unit(first), _unit(second)
    distance = (2 - 2 * one @ other.T).clamp_min(0)
    own, count = distance.diagonal().sum(), len(one)
    others = (distance.sum() - own) / (count - 1)
    return float(own / others) if float(others) > ROUNDING else 1.0


def uniformity(features: Tensor) -> float:
    """Log of the mean of exp(-2 d^2) over all pairs of different images, where d is the distance of their features at
    length 1 (Wang and Isola, 2020): 0 if all are equal, lower if they are spread."""
    unit = _unit(features)
    count = len(unit)
    if count < 2:
        return 0.0
    kernel = (-4 + 4 * unit @ unit.T).exp().fill_diagonal_(0)  # d^2 = 2 - 2 cos
    return float((kernel.sum() / (count * (count - 1))).log())


def nearest_neighbour_accuracy(features: Tensor, labels: Tensor) -> float | None:
    """Share of the images whose nearest other image, by cosine, has the same label. Images that are alone in their
    class can be neighbours but are not counted; None if all are alone."""
    known = (labels[:, None] == labels).sum(1) > 1
    if not bool(known.any()):
        return None
    unit = _unit(features)
    nearest = (unit @ unit.T).fill_diagonal_(-torch.inf).argmax(1)
    return float((labels[nearest] == labels)[known].double().mean())


def _unit(features: Tensor) -> Tensor:
    return F.normalize(features.double(), dim=-1)

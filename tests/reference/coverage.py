"""Greedy coverage, written from its definition: every pair of photos, every candidate, every step."""

import torch
from torch import Tensor


def covers(vectors: Tensor, neighbours: int, power: float) -> Tensor:
    """(N, N): how much photo i covers photo j. A pair counts if either is among the nearest of the other."""
    units = vectors.double() - vectors.double().mean(0)
    units = units / units.norm(dim=1, keepdim=True)
    cosine = units @ units.T
    cosine.fill_diagonal_(-2)
    near = torch.zeros_like(cosine, dtype=torch.bool)
    for row in range(len(cosine)):
        near[row, cosine[row].argsort(descending=True)[:neighbours]] = True
    value = torch.where(near | near.T, cosine.clamp_min(0) ** power, 0.0)
    value.fill_diagonal_(1)
    return value


def coverage(value: Tensor, weight: Tensor, chosen: list[int]) -> float:
    """Sum over photos of weight x how well the best chosen one covers it."""
    if not chosen:
        return 0.0
    return float((weight * value[chosen].amax(0)).sum())


def order(value: Tensor, weight: Tensor, count: int, labeled: list[int]) -> list[int]:
    chosen: list[int] = []
    for _ in range(count):
        left = [row for row in range(len(value)) if row not in labeled + chosen]
        gains = [coverage(value, weight, [*labeled, *chosen, row]) for row in left]
        chosen.append(left[max(range(len(left)), key=gains.__getitem__)])
    return chosen

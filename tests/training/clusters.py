"""Clusters of vectors that overlap a little, a few of them labeled."""

import torch
from torch import Tensor


def clusters(
    sizes: tuple[int, ...] = (60, 60, 60), width: int = 16, labels: int = 4, gap: float = 1.0, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Features, labels with -1, and the truth."""
    generator = torch.Generator().manual_seed(seed)
    truth = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    centres = gap * torch.randn(len(sizes), width, generator=generator)
    features = centres[truth] + torch.randn(len(truth), width, generator=generator)
    known = torch.full_like(truth, -1)
    for number in range(len(sizes)):
        known[(truth == number).nonzero().flatten()[:labels]] = number
    return features, known, truth

"""What several algorithms share: hard and sharpened targets, MixUp, and ramps of weights."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.debias import ranks
from debiaspl.debias.correction import at_least_float32


def sharpen(probabilities: Tensor, temperature: float) -> Tensor:
    """``p ** (1 / T)``, normalised to sum 1. T = 1 changes nothing; towards 0 the most likely class takes all."""
    # In logarithms: a power of 1 / T would let every class of an uncertain row underflow to 0.
    return (at_least_float32(probabilities).log() / temperature).softmax(-1)


def mixup(
    images: Tensor, targets: Tensor, alpha: float, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Mix each image and its target, (N, C), with those of another one of the rank (MixUp: Zhang et al., 2018).

    Each keeps a share of ``max(lambda, 1 - lambda)``, lambda ~ Beta(alpha, alpha), so that it is closer to itself than
    to its partner, as in MixMatch; 0 mixes nothing.
    """
    if alpha == 0:
        return images, targets
    share = major_share(len(images), alpha, images.device, generator)
    # Sorting random keys is a permutation that a CUDA graph can replay.
    keys = torch.rand(ranks.count() * len(images), device=images.device, generator=generator)
    partner = ranks.own_part(keys).argsort()
    return _between(images, partner, share), _between(targets, partner, share)


def major_share(count: int, alpha: float, device: torch.device, generator: torch.Generator | None = None) -> Tensor:
    """``max(lambda, 1 - lambda)`` for lambda ~ Beta(alpha, alpha), (count,): a gamma draw over the sum of two."""
    # torch.distributions can only draw from the global generator.
    shape = torch.full((2, ranks.count() * count), alpha, device=device)
    one, other = ranks.own_part(torch._standard_gamma(shape, generator=generator), 1)
    return torch.maximum(one, other) / (one + other)


def one_hot(labels: Tensor, like: Tensor) -> Tensor:
    """Labels as rows with the width and the dtype of ``like``."""
    return F.one_hot(labels, like.shape[-1]).to(like.dtype)


def ramp(progress: Tensor, share: float) -> Tensor:
    """Linear from 0 to 1 over the first ``share`` of the training, then 1; a share of 0 is 1 throughout."""
    return (progress / share).clamp(max=1) if share else torch.ones_like(progress)


def _between(rows: Tensor, partner: Tensor, share: Tensor) -> Tensor:
    exact = at_least_float32(rows)
    share = share.to(exact.dtype).view(-1, *[1] * (rows.ndim - 1))
    return torch.lerp(exact[partner], exact, share).to(rows.dtype)

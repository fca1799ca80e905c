"""Spherical k-means: groups of vectors with similar directions."""

import torch
import torch.nn.functional as F
from torch import Tensor

ROUNDS = 20


@torch.no_grad()
def clusters(units: Tensor, count: int, seed: int = 0, rounds: int = ROUNDS) -> Tensor:
    """Cluster number of each row of ``units``, (N, D), which have length 1: int64, (N,), below ``count``.

    The first centres are drawn by k-means++ (Arthur and Vassilvitskii, 2007), with a probability that grows with the
    squared distance to the centres drawn before. A cluster that loses all members keeps its centre.
    """
    if not 1 <= count <= len(units):
        raise ValueError(f"count is {count} clusters, expected 1 to {len(units)}: there are {len(units)} vectors.")
    generator = torch.Generator().manual_seed(seed)
    centres = units[torch.randint(len(units), (1,), generator=generator)]
    closest = torch.full((len(units),), -1.0, device=units.device)
    for _ in range(count - 1):
        closest = torch.maximum(closest, units @ centres[-1])
        distance = (2 - 2 * closest).clamp_min(0).cpu().double()
        distance = distance if float(distance.sum()) > 0 else torch.ones_like(distance)  # all vectors are equal
        centres = torch.cat((centres, units[torch.multinomial(distance, 1, generator=generator)]))
    home = (units @ centres.T).argmax(-1)
    for _ in range(rounds):
        members = F.one_hot(home, count).to(units.dtype)
        sums = members.T @ units
        centres = torch.where(members.sum(0)[:, None] > 0, F.normalize(sums, dim=-1), centres)
        before, home = home, (units @ centres.T).argmax(-1)
        if torch.equal(before, home):
            break
    return home

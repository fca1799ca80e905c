"""The strong view of a vector: some of its features are hidden, and the others disturbed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from debiaspl.debias import ranks


@dataclass(frozen=True)
class Hide:
    """``hide(vectors, generator)``: for what has been scaled, so that 0 is the mean of every feature."""

    hidden: float = 0.25
    """Share of the features that are set to their mean."""
    noise: float = 0.0
    """Length of the noise on the others, for vectors of length 1."""

    def __post_init__(self) -> None:
        if not 0 <= self.hidden < 1:
            raise ValueError(f"hidden is {self.hidden}, expected a share in [0, 1): 0 hides no feature.")
        if not 0 <= self.noise < float("inf"):
            raise ValueError(f"noise is {self.noise}, expected 0 or more: the length of what is added.")

    def __call__(self, vectors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        rows, width = ranks.count() * len(vectors), vectors.shape[1]
        if self.noise:
            drawn = torch.randn((rows, width), generator=generator, device=vectors.device)
            length = vectors.norm(dim=-1, keepdim=True)
            vectors = vectors.addcmul(ranks.own_part(drawn), length, value=self.noise / width**0.5)
        if self.hidden:
            # Random bytes, eight from each draw: that takes a seventh of the time of a uniform number for each.
            draws = torch.empty((rows, -(-width // 8)), dtype=torch.int64, device=vectors.device)
            draws = ranks.own_part(draws.random_(-(2**63), None, generator=generator))
            hidden = min(round(256 * self.hidden), 255)
            kept = draws.view(torch.uint8)[:, :width] >= hidden
            # Scaled up by what is hidden: shorter vectors would have smaller logits, and teach weights to grow.
            vectors = vectors * kept * (256 / (256 - hidden))
        return vectors

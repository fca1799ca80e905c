"""Views of vectors: given ones, or made by noise and by hiding features."""

from dataclasses import dataclass

import torch
from torch import Tensor

from debiaspl.vectors.scaling import Scaling


@dataclass(frozen=True, eq=False)
class VectorViews:
    """``weak(rows)`` and ``strong(rows)``: scaled vectors of these rows, drawn anew at every call.

    Where views of each image were computed beforehand, one of them is drawn for each row. Where there is no strong
    view, it is made of a weak one: some features are set to their mean, and the others disturbed.
    """

    features: Tensor
    """(V, N, D): weak views."""
    given: Tensor | None
    """(W, N, D): strong views."""
    scaling: Scaling
    hidden: float
    """Share of the features that a made strong view hides."""
    noise: float
    """Deviation of the noise of a made strong view, in deviations of the feature."""
    generator: torch.Generator

    def __post_init__(self) -> None:
        if not 0 <= self.hidden < 1:
            raise ValueError(f"hidden is {self.hidden}, expected a share in [0, 1): 0 hides no feature.")
        if not 0 <= self.noise < float("inf"):
            raise ValueError(f"noise is {self.noise}, expected 0 or more deviations of a feature.")

    def weak(self, rows: Tensor) -> Tensor:
        return self.scaling(self._drawn(self.features, rows))

    def strong(self, rows: Tensor) -> Tensor:
        if self.given is not None:
            return self.scaling(self._drawn(self.given, rows))
        return self._disturbed(self.weak(rows))

    def _drawn(self, views: Tensor, rows: Tensor) -> Tensor:
        count, size = views.shape[:2]
        if count > 1:
            rows = rows + size * torch.randint(count, rows.shape, generator=self.generator, device=rows.device)
        return views.flatten(0, 1).index_select(0, rows)

    def _disturbed(self, vectors: Tensor) -> Tensor:
        if self.noise:
            scale = self.noise * (self.scaling.factor != 0) / vectors.shape[1] ** 0.5
            drawn = torch.randn(vectors.shape, generator=self.generator, device=vectors.device)
            vectors = vectors.addcmul(drawn, scale)
        if self.hidden:
            # Scaled up by what is hidden: shorter vectors would have smaller logits, and teach weights to grow.
            hidden = min(round(256 * self.hidden), 255)
            vectors = vectors * (self._bytes(vectors) >= hidden) * (256 / (256 - hidden))
        return vectors

    def _bytes(self, like: Tensor) -> Tensor:
        """Random bytes, eight from each draw: that takes a seventh of the time of a uniform number for each."""
        draws = torch.empty((len(like), -(-like.shape[1] // 8)), dtype=torch.int64, device=like.device)
        return draws.random_(-(2**63), None, generator=self.generator).view(torch.uint8)[:, : like.shape[1]]

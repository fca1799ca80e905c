"""Rows of a large table of features, scaled when they are needed."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from debiaspl.data.images import StoredImages
from debiaspl.models import Scaling


@dataclass(frozen=True, eq=False)
class ScaledRows(StoredImages):
    """Some rows of ``features``, (N, D), which may be mapped into memory; indexed like a tensor of scaled ones."""

    features: Tensor
    scaling: Scaling
    positions: Tensor
    dtype = torch.float32

    @property
    def device(self) -> torch.device:
        return self.features.device

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.positions), self.features.shape[1]

    def __getitem__(self, positions: Tensor) -> Tensor:
        rows: Tensor = self.scaling(self.features[self.positions[positions]])
        return rows

    def is_same(self, other: Self) -> bool:
        return torch.equal(self[torch.arange(len(self.positions))], other[torch.arange(len(other.positions))])

    def digest(self) -> bytes:
        raise NotImplementedError("a fit in memory is not resumed")

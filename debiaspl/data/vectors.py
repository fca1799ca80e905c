"""Feature vectors in the place of pictures: what a frozen encoder has made of them."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Vectors:
    """What an ``ImageSet`` holds when its pictures have been encoded; indexed by positions, like a tensor."""

    values: Tensor
    """Floats, (N, V, D): the vector of each picture as it is, then those of its views."""
    strong: int = 0
    """The last so many are those of strong views."""

    def __post_init__(self) -> None:
        shape = tuple(self.values.shape)
        if len(shape) != 3 or 0 in shape or not self.values.is_floating_point():
            raise ValueError(f"vectors have shape {shape} and dtype {self.values.dtype}, expected floats (N, V, D).")
        if not 0 <= self.strong < shape[1]:
            raise ValueError(f"{self.strong} of {shape[1]} views are strong, expected fewer: the first is the picture.")

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        return self.values.device

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    def select(self, positions: Tensor) -> "Vectors":
        return replace(self, values=self.values[positions])

    def joined(self, other: "Vectors") -> "Vectors":
        # A part that did not fit beside the training stayed where it was; then both are there.
        where = self.device if self.device == other.device else torch.device("cpu")
        return replace(self, values=torch.cat((self.values.to(where), other.values.to(where))))

    def is_same(self, other: "Vectors") -> bool:
        return torch.equal(self.values[:, 0].cpu(), other.values[:, 0].cpu())

    def to(self, device: torch.device) -> "Vectors":
        return replace(self, values=self.values.to(device))

    def __getitem__(self, positions: Tensor) -> Tensor:
        return self.values[positions]

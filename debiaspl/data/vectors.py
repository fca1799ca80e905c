"""Feature vectors of a frozen encoder, instead of images."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Vectors:
    """Replaces the images of an ``ImageSet`` after encoding; indexed by positions, like a tensor."""

    values: Tensor
    """Floats, (N, V, D): the vector of each original image, then those of its views."""
    strong: int = 0
    """How many of the views, the last ones, are strong."""

    def __post_init__(self) -> None:
        shape = tuple(self.values.shape)
        if len(shape) != 3 or 0 in shape or not self.values.is_floating_point():
            raise ValueError(f"vectors have shape {shape} and dtype {self.values.dtype}, expected floats (N, V, D).")
        if not 0 <= self.strong < shape[1]:
            raise ValueError(f"{self.strong} of {shape[1]} views are strong, expected fewer: the first is the image.")

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
        # One part may have stayed off the device because it did not fit; then both go there.
        where = self.device if self.device == other.device else torch.device("cpu")
        return replace(self, values=torch.cat((self.values.to(where), other.values.to(where))))

    def is_same(self, other: "Vectors") -> bool:
        return torch.equal(self.values[:, 0].cpu(), other.values[:, 0].cpu())

    def to(self, device: torch.device) -> "Vectors":
        return replace(self, values=self.values.to(device))

    def __getitem__(self, positions: Tensor) -> Tensor:
        return self.values[positions]

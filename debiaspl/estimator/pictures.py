"""From arrays of images, as scikit-learn users have them, to uint8 (N, C, H, W)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Pictures:
    """How arrays of images become bytes; learned from the training images, so that others are treated alike."""

    shape: tuple[int, ...]
    """(H, W) or (H, W, C)."""
    low: float
    """What becomes 0."""
    high: float
    """What becomes 255."""

    @classmethod
    def of(cls, images: NDArray[Any]) -> "Pictures":
        """uint8 stays as it is; other numbers are stretched, from the least to the largest."""
        if images.ndim > 4 or (images.ndim == 4 and images.shape[3] not in (1, 3)):
            channels_first = images.ndim == 4 and images.shape[1] in (1, 3)
            hint = " Channels come last: X.transpose(0, 2, 3, 1)." if channels_first else ""
            raise ValueError(
                f"X has shape {images.shape}, expected features (N, D), or images (N, H, W), (N, H, W, 1) or "
                f"(N, H, W, 3).{hint}"
            )
        if 0 in images.shape:
            raise ValueError(f"X has shape {images.shape}, expected images of at least one pixel.")
        low, high = (0.0, 255.0) if images.dtype == np.uint8 else (float(images.min()), float(images.max()))
        return cls(images.shape[1:], low, high)

    def __call__(self, images: NDArray[Any]) -> Tensor:
        if images.shape[1:] != self.shape:
            raise ValueError(f"images of X have shape {images.shape[1:]}, expected {self.shape}, as in fit.")
        if images.dtype != np.uint8 or (self.low, self.high) != (0.0, 255.0):
            span = (self.high - self.low) or 1.0
            images = np.rint(np.clip((images - self.low) * (255 / span), 0, 255)).astype(np.uint8)
        pixels = torch.from_numpy(np.ascontiguousarray(images))
        return (pixels.unsqueeze(-1) if images.ndim == 3 else pixels).permute(0, 3, 1, 2).contiguous()

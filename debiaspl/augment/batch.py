"""What all augmentations share: random numbers, and cached constants on the device."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from debiaspl.debias import ranks


def uniform(numbers: int, images: Tensor, generator: torch.Generator | None) -> Tensor:
    """Uniform float64 numbers in [0, 1), (numbers, N). Each rank draws for the batches of all ranks and uses its own
    part, so that the views of an image do not depend on the number of ranks."""
    everyone = ranks.count() * images.shape[0]
    drawn = torch.rand(numbers, everyone, generator=generator, device=images.device, dtype=torch.float64)
    return ranks.own_part(drawn, 1).contiguous()


@lru_cache(maxsize=512)
def constant(numbers: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor of a few numbers, cached per device; do not write to it.

    Made on the CPU and moved, which fails during a CUDA graph capture, as it should: the graph would own the memory.
    """
    return torch.tensor(numbers, dtype=dtype).to(device)

"""From bytes to what a network takes."""

import torch
from torch import Tensor


def scale(images: Tensor) -> Tensor:
    """uint8 0..255 to float32 -1..1, as FixMatch scales its images; channels last, the layout convolutions prefer."""
    return images.to(torch.float32, memory_format=torch.channels_last).div_(127.5).sub_(1)

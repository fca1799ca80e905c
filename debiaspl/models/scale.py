"""From bytes to what a network takes."""

import torch
from torch import Tensor

from debiaspl.kernels import holds


def scale(images: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """uint8 0..255 to -1..1, as FixMatch scales its images, in torch's default precision unless another is named;
    channels last, the layout convolutions prefer. Of vectors, (N, V, D), the first: the picture as it is."""
    if images.is_floating_point():
        return images[:, 0]
    dtype = dtype or torch.get_default_dtype()
    if holds(images):
        from debiaspl.kernels import views_triton

        return views_triton.scale(images.contiguous(), dtype)
    return images.to(torch.float32, memory_format=torch.channels_last).div_(127.5).sub_(1).to(dtype)

"""ResNet (He et al., 2016), v1.5, written out: a table of layers, and plain convolutions with the weights by name."""

import torch
import torch.nn.functional as F
from torch import Tensor

STAGES = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}


def features(weights: dict[str, Tensor], depth: int, images: Tensor) -> Tensor:
    """Of images of -1..1, normalised by the statistics in ``weights``."""

    def convolve(name: str, norm: str, incoming: Tensor, stride: int) -> Tensor:
        kernel = weights[f"{name}.weight"]
        out = F.conv2d(incoming, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        mean, variance = weights[f"{norm}.running_mean"], weights[f"{norm}.running_var"]
        out = (out - mean[None, :, None, None]) / (variance + 1e-5).sqrt()[None, :, None, None]
        return out * weights[f"{norm}.weight"][None, :, None, None] + weights[f"{norm}.bias"][None, :, None, None]

    pixels = (images + 1) / 2
    red, green, blue = pixels.unbind(1)
    normal = torch.stack(((red - 0.485) / 0.229, (green - 0.456) / 0.224, (blue - 0.406) / 0.225), 1)
    out = F.max_pool2d(convolve("conv1", "bn1", normal, 2).clamp_min(0), kernel_size=3, stride=2, padding=1)
    for stage, count in enumerate(STAGES[depth], start=1):
        for block in range(count):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            inner = out
            # The stride is in the first 3x3 convolution.
            strides = (stride, 1) if depth == 18 else (1, stride, 1)
            for number, own in enumerate(strides, start=1):
                inner = convolve(f"{name}.conv{number}", f"{name}.bn{number}", inner, own)
                if number < len(strides):
                    inner = inner.clamp_min(0)
            if f"{name}.downsample.0.weight" in weights:
                out = convolve(f"{name}.downsample.0", f"{name}.downsample.1", out, stride)
            out = (out + inner).clamp_min(0)
    return out.flatten(2).mean(2)

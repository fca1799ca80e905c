"""Residual network (He et al., 2016) for photos; its parameters have the names of common checkpoints."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.models.network import Network, initialise, make_head

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's colours, with which published checkpoints were trained."""


class ResNet(Network):
    """ResNet-50 has 25.6 M parameters for 1,000 classes, ResNet-18 has 11.7 M.

    As in MoCo and EMAN, a bottleneck's stride is in its 3x3 convolution (v1.5), and a block's last norm starts at 1.

    Args:
        depth: 18 or 50 layers.
    """

    gain: Tensor
    offset: Tensor

    def __init__(
        self, num_classes: int, channels: int = 3, depth: int = 50, norm_momentum: float = 0.1, head: str = "linear"
    ) -> None:
        super().__init__()
        if depth not in BLOCKS:
            raise ValueError(f"depth is {depth}, expected {' or '.join(map(str, BLOCKS))}.")
        block, counts = BLOCKS[depth]
        # Images come as -1..1. These constants are known without a file of weights, so they are not saved.
        colour = channels == 3
        mean, deviation = (torch.tensor(values if colour else (0.5,)) for values in (MEAN, DEVIATION))
        self.register_buffer("gain", (0.5 / deviation).reshape(1, -1, 1, 1), persistent=False)
        self.register_buffer("offset", ((0.5 - mean) / deviation).reshape(1, -1, 1, 1), persistent=False)

        self.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64, momentum=norm_momentum)
        stages: list[nn.Sequential] = []
        incoming = 64
        for number, count in enumerate(counts):
            width = 64 * 2**number
            stages.append(_stage(block, incoming, width, count, 2 if number else 1, norm_momentum))
            incoming = width * block.widening
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.num_features = incoming
        self.head = make_head(head, incoming, num_classes)
        initialise(self)

    def embed(self, images: Tensor) -> Tensor:
        normal = images * self.gain.to(images.dtype) + self.offset.to(images.dtype)
        active = F.max_pool2d(F.relu(self.bn1(self.conv1(normal))), 3, stride=2, padding=1)
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            active = layer(active)
        return active.mean((2, 3))


class Basic(nn.Module):
    widening = 1

    def __init__(self, incoming: int, width: int, stride: int, norm_momentum: float) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(incoming, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width, momentum=norm_momentum)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width, momentum=norm_momentum)
        self.downsample = _shortcut(incoming, width, stride, norm_momentum)

    def forward(self, images: Tensor) -> Tensor:
        inner = F.relu(self.bn1(self.conv1(images)))
        return F.relu(self.bn2(self.conv2(inner)) + self.downsample(images))


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 ones that reduce and expand the width, and a shortcut."""

    widening = 4

    def __init__(self, incoming: int, width: int, stride: int, norm_momentum: float) -> None:
        super().__init__()
        outgoing = width * self.widening
        self.conv1 = nn.Conv2d(incoming, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width, momentum=norm_momentum)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width, momentum=norm_momentum)
        self.conv3 = nn.Conv2d(width, outgoing, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outgoing, momentum=norm_momentum)
        self.downsample = _shortcut(incoming, outgoing, stride, norm_momentum)

    def forward(self, images: Tensor) -> Tensor:
        inner = F.relu(self.bn1(self.conv1(images)))
        inner = F.relu(self.bn2(self.conv2(inner)))
        return F.relu(self.bn3(self.conv3(inner)) + self.downsample(images))


def _stage(
    block: type[Basic | Bottleneck], incoming: int, width: int, count: int, stride: int, norm_momentum: float
) -> nn.Sequential:
    """``count`` blocks, the first with this stride."""
    first = block(incoming, width, stride, norm_momentum)
    outgoing = width * block.widening
    return nn.Sequential(first, *(block(outgoing, width, 1, norm_momentum) for _ in range(count - 1)))


def _shortcut(incoming: int, outgoing: int, stride: int, norm_momentum: float) -> nn.Module:
    if incoming == outgoing and stride == 1:
        return nn.Identity()
    convolution = nn.Conv2d(incoming, outgoing, 1, stride, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outgoing, momentum=norm_momentum))


BLOCKS: dict[int, tuple[type[Basic | Bottleneck], tuple[int, ...]]] = {
    18: (Basic, (2, 2, 2, 2)),
    50: (Bottleneck, (3, 4, 6, 3)),
}
"""Depth -> type of block, and number of blocks in each of the four stages."""

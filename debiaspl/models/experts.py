"""The network of RIDE (Wang et al., 2021): experts share the first layers, and each has its own last layers."""

import torch
from torch import Tensor, nn

from debiaspl.debias.correction import within
from debiaspl.debias.heads import NormalisedHead
from debiaspl.kernels.norm import NormActivate
from debiaspl.models.network import Network, initialise
from debiaspl.models.wrn import EPS, SLOPE, WideResNet, stages, through


class WideExperts(Network):
    """WRN-depth-width, of which the experts share the first of three stages.

    Features are those of all experts, one after the other; the logits are the mean of theirs, 30 times a cosine.

    Args:
        depth: number of layers, 6 n + 4 for three stages of n blocks.
        width: factor on the channels of the original ResNet.
        experts: number of experts; RIDE has 2 to 4.
        narrower: factor on the channels of an expert's own stages.
    """

    def __init__(
        self,
        num_classes: int,
        channels: int = 3,
        depth: int = 28,
        width: int = 2,
        experts: int = 3,
        narrower: float = 0.75,
        norm_momentum: float = 0.1,
    ) -> None:
        super().__init__()
        within("experts", experts, "[2, inf)")
        within("narrower", narrower, "(0, 1]")
        whole = WideResNet(num_classes, channels, depth, width, norm_momentum)
        count, first = len(whole.blocks) // 3, 16 * width
        widths = [max(1, round(narrower * factor * width)) for factor in (32, 64)]
        self.shared = _Shared(whole, count)
        self.experts = nn.ModuleList(_Expert(first, widths, count, norm_momentum) for _ in range(experts))
        self.num_features = widths[-1] * experts
        self.head = NormalisedHead(self.num_features, num_classes, heads=experts)
        initialise(self)

    def embed(self, images: Tensor) -> Tensor:
        shared = self.shared(images)
        return torch.cat([expert(shared) for expert in self.experts], 1)


class _Shared(nn.Module):
    def __init__(self, whole: WideResNet, count: int) -> None:
        super().__init__()
        self.stem, self.blocks = whole.stem, whole.blocks[:count]

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        return through(self.blocks, self.stem(images), None)


class _Expert(nn.Module):
    def __init__(self, incoming: int, widths: list[int], count: int, norm_momentum: float) -> None:
        super().__init__()
        self.blocks = stages(incoming, widths, [count] * len(widths), norm_momentum, first=False)
        self.norm = NormActivate(widths[-1], norm_momentum, EPS, SLOPE)

    def forward(self, shared: tuple[Tensor, Tensor | None]) -> Tensor:
        _, active = self.norm(*through(self.blocks, *shared))
        return active.mean((2, 3))

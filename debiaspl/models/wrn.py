"""Wide residual network (Zagoruyko and Komodakis, 2016) the way FixMatch uses it."""

from itertools import pairwise

from torch import Tensor, nn

from debiaspl.kernels.norm import NormActivate
from debiaspl.models.initial import initialise
from debiaspl.models.network import Network

SLOPE = 0.1
EPS = 1e-3


class WideResNet(Network):
    """WRN-depth-width for 32x32 images; WRN-28-2 has 1.47 M parameters for ten classes.

    As in FixMatch: leaky ReLU, batch norm that remembers 999 parts in 1,000, and pre-activation blocks; the shortcut of
    the very first block alone starts from the activated input.

    Args:
        num_classes: classes.
        channels: of the images.
        depth: layers, 6 n + 4 for three stages of n blocks.
        width: how many times as many channels as the original ResNet has.
        norm_momentum: how fast the statistics of batch norm move.
    """

    def __init__(
        self, num_classes: int, channels: int = 3, depth: int = 28, width: int = 2, norm_momentum: float = 0.001
    ) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth is {depth}, expected 6 n + 4, such as 28: three stages of n blocks.")
        if width < 1:
            raise ValueError(f"width is {width}, expected at least 1.")
        blocks = (depth - 4) // 6
        widths = [16, 16 * width, 32 * width, 64 * width]
        self.stem = nn.Conv2d(channels, widths[0], 3, padding=1, bias=False)
        stages: list[nn.Module] = []
        for stage, (incoming, outgoing) in enumerate(pairwise(widths)):
            for block in range(blocks):
                first = block == 0
                stages.append(
                    Block(
                        incoming if first else outgoing,
                        outgoing,
                        stride=2 if first and stage > 0 else 1,
                        activate_shortcut=first and stage == 0,
                        norm_momentum=norm_momentum,
                    )
                )
        self.blocks = nn.ModuleList(stages)
        self.norm = NormActivate(widths[3], norm_momentum, EPS, SLOPE)
        self.num_features = widths[3]
        self.head = nn.Linear(self.num_features, num_classes)
        initialise(self)

    def embed(self, images: Tensor) -> Tensor:
        features, inner = self.stem(images), None
        for block in self.blocks:
            features, inner = block(features, inner)
        _, active = self.norm(features, inner)
        mean: Tensor = active.mean((2, 3))
        return mean


class Block(nn.Module):
    """Norm, activation, convolution, twice, beside a shortcut. The two are not added here: the next norm does that."""

    def __init__(
        self, incoming: int, outgoing: int, stride: int, activate_shortcut: bool, norm_momentum: float
    ) -> None:
        super().__init__()
        self.norm1 = NormActivate(incoming, norm_momentum, EPS, SLOPE)
        self.conv1 = nn.Conv2d(incoming, outgoing, 3, stride, padding=1, bias=False)
        self.norm2 = NormActivate(outgoing, norm_momentum, EPS, SLOPE)
        self.conv2 = nn.Conv2d(outgoing, outgoing, 3, padding=1, bias=False)
        widens = incoming != outgoing or stride != 1
        self.shortcut = nn.Conv2d(incoming, outgoing, 1, stride, bias=False) if widens else nn.Identity()
        self.activate_shortcut = activate_shortcut

    def forward(self, features: Tensor, inner: Tensor | None) -> tuple[Tensor, Tensor]:
        total, active = self.norm1(features, inner)
        _, between = self.norm2(self.conv1(active))
        return self.shortcut(active if self.activate_shortcut else total), self.conv2(between)

"""Pre-activation residual networks (He et al., 2016b) for small images: that of FixMatch, and ResNet-18."""

from collections.abc import Sequence

from torch import Tensor, nn

from debiaspl.debias.correction import within
from debiaspl.kernels.norm import NormActivate
from debiaspl.models.network import Network, initialise, make_head

SLOPE = 0.1
EPS = 1e-3


class PreActivation(Network):
    """A stem, stages of residual blocks (each stage but the first halves the image), a last norm, and the mean.

    Leaky ReLU; only the shortcut of the first block starts from the activated input, as in FixMatch.
    """

    def __init__(
        self,
        num_classes: int,
        channels: int,
        stem: int,
        widths: Sequence[int],
        blocks: Sequence[int],
        norm_momentum: float,
        head: str,
    ) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, stem, 3, padding=1, bias=False)
        self.blocks = stages(stem, widths, blocks, norm_momentum, first=True)
        self.norm = NormActivate(widths[-1], norm_momentum, EPS, SLOPE)
        self.num_features = widths[-1]
        self.head = make_head(head, self.num_features, num_classes)
        initialise(self)

    def embed(self, images: Tensor) -> Tensor:
        _, active = self.norm(*through(self.blocks, self.stem(images), None))
        return active.mean((2, 3))


class WideResNet(PreActivation):
    """WRN-depth-width (Zagoruyko and Komodakis, 2016) for 32x32 images; WRN-28-2 has 1.47 M parameters for ten classes.

    As in FixMatch: leaky ReLU, and batch norm with a momentum of 0.001.

    Args:
        depth: number of layers, 6 n + 4 for three stages of n blocks.
        width: factor on the channels of the original ResNet.
    """

    def __init__(
        self,
        num_classes: int,
        channels: int = 3,
        depth: int = 28,
        width: int = 2,
        norm_momentum: float = 0.001,
        head: str = "linear",
    ) -> None:
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth is {depth}, expected 6 n + 4, such as 28: three stages of n blocks.")
        within("width", width, "[1, inf)")
        widths, blocks = (16 * width, 32 * width, 64 * width), ((depth - 4) // 6,) * 3
        super().__init__(num_classes, channels, 16, widths, blocks, norm_momentum, head)


class ResNet18(PreActivation):
    """The usual network for self-supervised learning on CIFAR-10: 11.2 M parameters for ten classes.

    An image of 32x32 pixels keeps its size in the first stage. For photos of 100 pixels and more, use ``resnet``.

    Args:
        widths: channels of the four stages; each but the first halves the image.
        blocks: residual blocks in each stage.
    """

    def __init__(
        self,
        num_classes: int,
        channels: int = 3,
        widths: tuple[int, ...] = (64, 128, 256, 512),
        blocks: tuple[int, ...] = (2, 2, 2, 2),
        norm_momentum: float = 0.1,
        head: str = "linear",
    ) -> None:
        if not widths or len(widths) != len(blocks) or min(*widths, *blocks) < 1:
            raise ValueError(f"widths are {widths} and blocks are {blocks}, expected equally many, all at least 1.")
        super().__init__(num_classes, channels, widths[0], widths, blocks, norm_momentum, head)


class Block(nn.Module):
    """Norm, activation, convolution, twice, and a shortcut. Their sum is computed in the next norm, not here."""

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


def stages(
    incoming: int, widths: Sequence[int], blocks: Sequence[int], norm_momentum: float, first: bool
) -> nn.ModuleList:
    """Blocks of several stages. Each halves the image, except the ``first`` of a network, whose first block alone
    activates its shortcut."""
    made = nn.ModuleList()
    for outgoing, count in zip(widths, blocks, strict=True):
        for number in range(count):
            stride = 1 if number or (first and len(made) == number) else 2
            made.append(Block(incoming, outgoing, stride, first and not made, norm_momentum))
            incoming = outgoing
    return made


def through(blocks: nn.ModuleList, features: Tensor, inner: Tensor | None) -> tuple[Tensor, Tensor | None]:
    for block in blocks:
        features, inner = block(features, inner)
    return features, inner

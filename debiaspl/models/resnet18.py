"""ResNet-18 for small images, with pre-activation (He et al., 2016b)."""

from torch import Tensor, nn

from debiaspl.kernels.norm import NormActivate
from debiaspl.models.initial import initialise
from debiaspl.models.network import Network
from debiaspl.models.wrn import EPS, SLOPE, Block


class ResNet18(Network):
    """The usual network of self-supervised learning on CIFAR-10: 11.2 M parameters for ten classes.

    Its first convolution is 3x3 with stride 1, and no max-pool follows: an image of 32x32 pixels keeps its size in the
    first stage. For photos of 100 pixels and more, ``resnet`` is the network.

    Args:
        num_classes: classes.
        channels: of the images.
        widths: channels of the four stages; each but the first halves the image.
        blocks: residual blocks of each stage.
        norm_momentum: how fast the statistics of batch norm move.
    """

    def __init__(
        self,
        num_classes: int,
        channels: int = 3,
        widths: tuple[int, ...] = (64, 128, 256, 512),
        blocks: tuple[int, ...] = (2, 2, 2, 2),
        norm_momentum: float = 0.1,
    ) -> None:
        super().__init__()
        if not widths or len(widths) != len(blocks) or min(*widths, *blocks) < 1:
            raise ValueError(f"widths are {widths} and blocks {blocks}, expected as many of each, all at least 1.")
        self.stem = nn.Conv2d(channels, widths[0], 3, padding=1, bias=False)
        made: list[nn.Module] = []
        incoming = widths[0]
        for stage, (outgoing, count) in enumerate(zip(widths, blocks, strict=True)):
            for number in range(count):
                stride = 2 if stage and number == 0 else 1
                activated = stage == 0 and number == 0
                made.append(Block(incoming, outgoing, stride, activated, norm_momentum))
                incoming = outgoing
        self.blocks = nn.ModuleList(made)
        self.norm = NormActivate(incoming, norm_momentum, EPS, SLOPE)
        self.num_features = incoming
        self.head = nn.Linear(incoming, num_classes)
        initialise(self)

    def embed(self, images: Tensor) -> Tensor:
        features, inner = self.stem(images), None
        for block in self.blocks:
            features, inner = block(features, inner)
        _, active = self.norm(features, inner)
        mean: Tensor = active.mean((2, 3))
        return mean

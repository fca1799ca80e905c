"""A small network for small grey images."""

from torch import Tensor, nn

from debiaspl.models.network import Network


class SmallNet(Network):
    """Four convolutions that halve the image twice, then the mean; for 8x8 to 32x32 images, fast on a CPU.

    Args:
        num_classes: number of classes.
        channels: channels of the images.
        width: channels of the first convolution; the last has four times as many.
        norm_momentum: momentum of the batch norm statistics; higher is faster.
    """

    def __init__(self, num_classes: int, channels: int = 1, width: int = 16, norm_momentum: float = 0.1) -> None:
        super().__init__()
        if width < 1:
            raise ValueError(f"width is {width}, expected at least 1.")
        layers: list[nn.Module] = []
        for incoming, outgoing, stride in (
            (channels, width, 1),
            (width, 2 * width, 2),
            (2 * width, 4 * width, 1),
            (4 * width, 4 * width, 2),
        ):
            layers += [
                nn.Conv2d(incoming, outgoing, 3, stride, padding=1, bias=False),
                nn.BatchNorm2d(outgoing, momentum=norm_momentum),
                nn.ReLU(inplace=True),
            ]
        self.features = nn.Sequential(*layers)
        self.num_features = 4 * width
        self.head = nn.Linear(self.num_features, num_classes)

    def embed(self, images: Tensor) -> Tensor:
        features: Tensor = self.features(images).mean((2, 3))
        return features

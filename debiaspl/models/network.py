"""The base class of all networks: features, then a linear classifier; a linear network, and one for small images."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from debiaspl._checks import within
from debiaspl.models.heads import make_head
from debiaspl.models.scaling import Scaling


class Network(nn.Module, ABC):
    """``network(images)`` returns logits, (N, classes); ``network.embed(images)`` returns their features, (N, D)."""

    num_features: int
    """Width of the features (D)."""
    head: nn.Linear
    least_side: int = 1
    """Smallest side of an image, in pixels."""
    draws: bool = False
    """Whether it draws random numbers of torch's own generator in training, as dropout does."""

    @abstractmethod
    def embed(self, images: Tensor) -> Tensor:
        """Features of images."""

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.embed(images))
        return logits

    def load_pretrained(self) -> None:
        """Load the weights that training starts with, if they are not random. Not called for a network that gets the
        weights of a run: the file may be gone."""


def initialise(network: Network) -> None:
    """Initialise as in FixMatch: convolutions after He et al. (2015), the classifier after Glorot and Bengio (2010)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    nn.init.xavier_normal_(network.head.weight)
    nn.init.zeros_(network.head.bias)


class LinearNetwork(Network):
    """A linear classifier that starts at zero: the first predictions are uniform, and no random numbers are drawn.

    It is trained with scaled vectors. After its ``scaling`` is set, it takes raw vectors.
    """

    scaling: Scaling | None

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.scaling = None
        # No random initial weights, which would use numbers of the user's generator.
        self.head: nn.Linear = nn.Linear(num_features, num_classes, device="meta").to_empty(device="cpu")
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def embed(self, images: Tensor) -> Tensor:
        return images if self.scaling is None else self.scaling(images)


class SmallNet(Network):
    """Four convolutions that halve the image twice, then the mean; for 8x8 to 32x32 images, fast on a CPU.

    Args:
        num_classes: number of classes.
        channels: channels of the images.
        width: channels of the first convolution; the last has four times as many.
        norm_momentum: momentum of the batch norm statistics; higher is faster.
        head: classifier: linear, cosine (LDAM), causal (Causal Norm) or hidden (SimCLRv2).
    """

    def __init__(
        self, num_classes: int, channels: int = 1, width: int = 16, norm_momentum: float = 0.1, head: str = "linear"
    ) -> None:
        super().__init__()
        within("width", width, "[1, inf)")
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
        self.head = make_head(head, self.num_features, num_classes)

    def embed(self, images: Tensor) -> Tensor:
        features: Tensor = self.features(images).mean((2, 3))
        return features

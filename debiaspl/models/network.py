"""What every network here is: features, then a linear classifier; and the first weights of convolutional ones."""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Network(nn.Module, ABC):
    """``network(images)`` are logits, (N, classes); ``network.embed(images)`` the features they are made of, (N, D)."""

    num_features: int
    """Width of the features (D)."""
    head: nn.Linear
    least_side: int = 1
    """Pixels a side of the smallest images that it can take."""

    @abstractmethod
    def embed(self, images: Tensor) -> Tensor:
        """Features of images."""

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.embed(images))
        return logits

    def load_pretrained(self) -> None:
        """Take over the weights that a training begins with, where they are not random. A network that is built for
        weights of its own, those of a run, does without: its file may be gone."""


def initialise(network: Network) -> None:
    """As FixMatch does it: convolutions after He et al. (2015), the classifier after Glorot and Bengio (2010)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    nn.init.xavier_normal_(network.head.weight)
    nn.init.zeros_(network.head.bias)

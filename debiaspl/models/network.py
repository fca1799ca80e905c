"""The base class of all networks: features, then a linear classifier; and the initial weights of convolutions."""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Network(nn.Module, ABC):
    """``network(images)`` returns logits, (N, classes); ``network.embed(images)`` returns their features, (N, D)."""

    num_features: int
    """Width of the features (D)."""
    head: nn.Linear
    least_side: int = 1
    """Smallest side of an image, in pixels."""

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

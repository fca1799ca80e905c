"""What every network here is: features, then a linear classifier."""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Network(nn.Module, ABC):
    """``network(images)`` are logits, (N, classes); ``network.embed(images)`` the features they are made of, (N, D)."""

    num_features: int
    """Width of the features (D)."""
    head: nn.Linear

    @abstractmethod
    def embed(self, images: Tensor) -> Tensor:
        """Features of images."""

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.embed(images))
        return logits

"""What every network here is: features, then a linear classifier."""

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

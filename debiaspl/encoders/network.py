"""A pretrained encoder with a new classifier, as a network."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from debiaspl.encoders.efficientnet import NAME, EfficientNetLite0
from debiaspl.encoders.encoder import Encoder
from debiaspl.encoders.load import build_encoder, load_encoder
from debiaspl.models import Network, Scaling


class EncoderNetwork(Network):
    """It is built from its architecture, with random weights: those of a run are in the run's own file.

    ``load_pretrained`` loads the weights that training starts with.

    Args:
        num_classes: number of classes.
        channels: channels of the images.
        source: source of the weights: efficientnet-lite0, a vision model of the hub, or a folder of one.
        architecture: the encoder's ``architecture``; by default that of efficientnet-lite0.
        frozen: keep the encoder's weights and train only the classifier. Features are computed once, centred and
            divided by their length.
    """

    draws = True

    def __init__(
        self,
        num_classes: int,
        channels: int = 3,
        source: str = NAME,
        architecture: Mapping[str, Any] | None = None,
        frozen: bool = False,
    ) -> None:
        encoder = EfficientNetLite0() if architecture is None else build_encoder(architecture)
        self._set(encoder, num_classes, channels, source, frozen)

    @classmethod
    def of(cls, encoder: Encoder, num_classes: int, source: str) -> "EncoderNetwork":
        """A network of an encoder that is frozen, and has its weights already."""
        network = cls.__new__(cls)
        network._set(encoder, num_classes, 3, source, frozen=True)
        return network.eval()

    def _set(self, encoder: Encoder, num_classes: int, channels: int, source: str, frozen: bool) -> None:
        super().__init__()
        self.encoder, self.source, self.channels, self.frozen = encoder, source, channels, frozen
        self.num_features = encoder.num_features
        self.scaling = Scaling(self.num_features, unit=True) if frozen else None
        self.head = nn.Linear(self.num_features, num_classes)

    def embed(self, images: Tensor) -> Tensor:
        features = self.encoder.embed(images)
        return features if self.scaling is None else self.scaling(features)

    def load_pretrained(self) -> None:
        """Load the weights of the encoder's source."""
        trained = load_encoder(self.source, image_size=self.encoder.image_size)
        self.encoder.load_state_dict(trained.state_dict())

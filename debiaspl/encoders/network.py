"""A pretrained encoder with a classifier of one's own: a network like any other."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from debiaspl.encoders.efficientnet import NAME, EfficientNetLite0
from debiaspl.encoders.load import build_encoder, load_encoder
from debiaspl.models import Network


class EncoderNetwork(Network):
    """Built from its architecture alone, with weights of chance: those of a run are in the run's own file.

    ``load_pretrained`` is what a training begins with. A ``frozen`` encoder keeps these weights: its features are
    computed once, and the classifier alone is trained.

    Args:
        num_classes: classes.
        channels: of the images.
        source: the encoder, by name or by the folder of its files.
        architecture: how the encoder is built, as its source says; a run fills it in.
        frozen: keep the encoder's weights and train the classifier alone.
    """

    def __init__(
        self,
        num_classes: int,
        channels: int = 3,
        source: str = NAME,
        architecture: Mapping[str, Any] | None = None,
        frozen: bool = False,
    ) -> None:
        super().__init__()
        self.source, self.channels, self.frozen = source, channels, frozen
        self.encoder = EfficientNetLite0() if architecture is None else build_encoder(architecture)
        self.num_features = self.encoder.num_features
        self.head = nn.Linear(self.num_features, num_classes)

    def embed(self, images: Tensor) -> Tensor:
        return self.encoder.embed(images)

    def load_pretrained(self) -> None:
        """Take over the weights of the encoder's source."""
        trained = load_encoder(self.source, image_size=self.encoder.image_size)
        self.encoder.load_state_dict(trained.state_dict())

"""Encoders by name, and a pretrained encoder with a new classifier, as a network."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from torch import Tensor, nn

from debiaspl.encoders.efficientnet import NAME, PACKAGE, EfficientNetLite0
from debiaspl.encoders.encoder import Encoder
from debiaspl.encoders.hub import KIND, build_hub_encoder, load_hub_encoder
from debiaspl.models import LinearNetwork, Network, Scaling


def load_encoder(name_or_folder: str, image_size: int | None = None) -> Encoder:
    """An encoder in eval mode.

    Args:
        name_or_folder: ``efficientnet-lite0`` (pip), a vision model on the Hugging Face hub, or its folder.
        image_size: side of the images inside the encoder; by default its training size. Convolutional encoders accept
            any size, and a smaller one is faster.
    """
    if name_or_folder == NAME:
        encoder: Encoder = EfficientNetLite0(image_size or 224).load_pretrained()
    else:
        encoder = load_hub_encoder(name_or_folder, image_size)
    encoder.source = name_or_folder
    return encoder.eval()


def build_encoder(architecture: Mapping[str, Any]) -> Encoder:
    """The network that ``encoder.architecture`` describes, with random weights, in eval mode."""
    kind = architecture.get("kind")
    if kind == NAME:
        return EfficientNetLite0(int(architecture["image_size"])).eval()
    if kind == KIND:
        return build_hub_encoder(dict(architecture)).eval()
    raise ValueError(f"the encoder kind is {kind!r}, expected {NAME} or {KIND}. Was it written by another version?")


def lite0_is_installed() -> bool:
    """Whether the weights of efficientnet-lite0 are installed, without reading them."""
    return find_spec(PACKAGE) is not None


class EncoderNetwork(Network):
    """It is built from its architecture, with random weights; ``load_pretrained`` loads those that a run begins with.

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
        encoder.source = source
        scaling = Scaling(encoder.num_features, unit=True) if frozen else None
        self._set(encoder, nn.Linear(encoder.num_features, num_classes), scaling, channels)

    @classmethod
    def of(cls, encoder: Encoder, fitted: LinearNetwork) -> "EncoderNetwork":
        """A network of an encoder that has its weights already, and of the classifier that was fitted to its
        features. It has all weights in common with both, none of which is to be trained."""
        network = cls.__new__(cls)
        network._set(encoder, fitted.head, fitted.scaling)
        return network.eval().requires_grad_(False)

    def _set(self, encoder: Encoder, head: nn.Linear, scaling: Scaling | None, channels: int = 3) -> None:
        super().__init__()
        self.encoder, self.channels, self.frozen = encoder, channels, scaling is not None
        self.num_features, self.scaling, self.head = encoder.num_features, scaling, head

    def embed(self, images: Tensor) -> Tensor:
        features = self.encoder.embed(images)
        return features if self.scaling is None else self.scaling(features)

    def load_pretrained(self) -> None:
        """Load the weights of the encoder's source."""
        trained = load_encoder(self.encoder.source, self.encoder.image_size)
        self.encoder.load_state_dict(trained.state_dict())

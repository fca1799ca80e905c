"""Load encoders by name."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from debiaspl.encoders.efficientnet import NAME, PACKAGE, EfficientNetLite0
from debiaspl.encoders.encoder import Encoder
from debiaspl.encoders.hub import KIND, build_hub_encoder, load_hub_encoder


def load_encoder(name_or_folder: str, weights: bool = True, image_size: int | None = None) -> Encoder:
    """An encoder in eval mode.

    Args:
        name_or_folder: ``efficientnet-lite0`` (pip), a vision model on the Hugging Face hub, or its folder.
        weights: False gives the same network with random weights.
        image_size: side of the images inside the encoder; by default its training size. Convolutional encoders accept
            any size, and a smaller one is faster.
    """
    if name_or_folder == NAME:
        encoder = EfficientNetLite0(image_size or 224)
        if weights:
            encoder.load_pretrained()
        return encoder.eval()
    loaded = load_hub_encoder(name_or_folder, image_size)
    return loaded if weights else build_encoder(loaded.architecture)


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

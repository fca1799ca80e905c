"""The base class of pretrained encoders: images in, one vector each out."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.data.tensor_file import digest_of_tensors
from debiaspl.debias.correction import within


class Encoder(nn.Module, ABC):
    """``encoder.embed(images)`` returns features, (N, num_features), of images scaled by ``debiaspl.models.scale``,
    which are resized to ``image_size`` inside, so that small photos can stay small in a run."""

    gain: Tensor
    offset: Tensor
    source: str = ""
    """Where its weights came from: a name or a folder."""
    any_size: bool = False
    """Whether ``image_size`` may differ from the training size."""
    may_read_text: bool = False
    """Whether it is the image part of a model that could read class names too."""

    def __init__(
        self, name: str, num_features: int, image_size: int, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        super().__init__()
        within("image_size", image_size, "[1, inf)")
        self.name, self.num_features, self.image_size = name, num_features, image_size
        self.mean, self.std = tuple(map(float, mean)), tuple(map(float, std))
        # Images come as -1..1, and the encoder was trained with (0..1 - mean) / std. These constants follow from the
        # architecture, so they are not saved with the weights.
        gain, offset = 0.5 / torch.tensor(self.std), (0.5 - torch.tensor(self.mean)) / torch.tensor(self.std)
        self.register_buffer("gain", gain.reshape(1, 3, 1, 1), persistent=False)
        self.register_buffer("offset", offset.reshape(1, 3, 1, 1), persistent=False)

    @property
    @abstractmethod
    def architecture(self) -> dict[str, Any]:
        """Plain values from which ``build_encoder`` makes the same network, with random weights."""

    @abstractmethod
    def features(self, images: Tensor) -> Tensor:
        """Features of images of the right size and range."""

    def embed(self, images: Tensor) -> Tensor:
        if images.shape[1] == 1:
            images = images.expand(-1, 3, -1, -1)
        size = self.image_size, self.image_size
        if tuple(images.shape[2:]) != size:
            images = F.interpolate(images, size=size, mode="bilinear", align_corners=False)
        return self.features(images * self.gain.to(images.dtype) + self.offset.to(images.dtype))


def fingerprint(encoder: Encoder) -> str:
    """A digest that changes with the architecture, the image size and every weight."""
    weights = {name: value.cpu() for name, value in encoder.state_dict().items()}
    return digest_of_tensors(weights, "encoder", json.dumps(encoder.architecture, sort_keys=True))

"""Operations, parameters and statistics of the library's networks, counted while a picture goes through them."""

from dataclasses import dataclass
from functools import cache

import torch
from torch import nn

from debiaspl.kernels.norm import NormActivate
from debiaspl.models import ResNet, WideResNet
from debiaspl.models.network import Network
from debiaspl.training.update import ALIGNED


@dataclass(frozen=True)
class Layer:
    """One layer, for one image."""

    macs: int = 0
    """Multiply-adds of a forward pass."""
    weights: int = 0
    """Parameters of two or more dimensions: bfloat16 on a GPU."""
    vectors: int = 0
    """Biases, and what norms learn: float32."""
    channels: int = 0
    """Of a batch norm."""


@dataclass(frozen=True)
class Architecture:
    """Layers in the order of the forward pass; the first one has no gradient to hand on."""

    name: str
    layers: tuple[Layer, ...]
    classes: int
    statistics: int
    """Numbers in the one flat tensor of running statistics, its gaps included."""

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def parameters(self) -> int:
        return sum(layer.weights + layer.vectors for layer in self.layers)

    @property
    def norms(self) -> tuple[int, ...]:
        return tuple(layer.channels for layer in self.layers if layer.channels)

    def gradient_bytes(self, of_weights: int) -> int:
        """With so many bytes for each weight; all else is float32."""
        return sum(of_weights * layer.weights + 4 * layer.vectors for layer in self.layers)


@cache
def wide_resnet() -> Architecture:
    with torch.device("meta"):  # shapes without numbers
        return _watched("WRN-28-2", WideResNet(10), 32, 10)


@cache
def resnet50(side: int = 224, classes: int = 1000) -> Architecture:
    with torch.device("meta"):
        return _watched("ResNet-50", ResNet(classes), side, classes)


def _watched(name: str, network: Network, side: int, classes: int) -> Architecture:
    layers: list[Layer] = []

    def note(module: nn.Module, _: object, out: torch.Tensor | tuple[torch.Tensor, ...]) -> None:
        weights, vectors = (
            sum(p.numel() for p in module.parameters() if (p.ndim > 1) is many) for many in (True, False)
        )
        if isinstance(module, NormActivate | nn.BatchNorm2d):
            layers.append(Layer(vectors=vectors, channels=vectors // 2))
        elif isinstance(module, nn.Conv2d | nn.Linear) and isinstance(out, torch.Tensor):
            places = out.shape[2] * out.shape[3] if out.ndim == 4 else 1
            layers.append(Layer(macs=weights * places, weights=weights, vectors=vectors))

    for module in network.modules():
        module.register_forward_hook(note)
    network(torch.empty(2, 3, side, side))
    learned = network.state_dict()  # without constants
    named = network.named_buffers()
    floats = [buffer.numel() for key, buffer in named if key in learned and buffer.is_floating_point()]
    return Architecture(name, tuple(layers), classes, sum(-(-size // ALIGNED) * ALIGNED for size in floats))

"""One step on one GPU: operations, parameters and statistics of the library's networks, counted while a picture goes
through them, what passes the network, and how long that takes."""

import json
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import nn

from benchmarks.scaling_parts.origin import ROOT, assumed, measured
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


@dataclass(frozen=True)
class Work:
    """One step: how many views pass the network, and how long that takes on one GPU."""

    name: str
    network: Architecture
    labeled: int
    unlabeled: int
    forward: int
    """Views that pass forward alone."""
    both: int
    """Views that pass forward and backward."""
    cld: bool = False
    """With the loss that groups all images of the batch by class."""
    seconds: float = 0.0

    @property
    def images(self) -> int:
        return self.labeled + self.unlabeled

    @property
    def backward_flop(self) -> int:
        return 2 * self.both * (2 * self.network.macs - self.network.layers[0].macs)

    @property
    def flop(self) -> int:
        return 2 * (self.forward + self.both) * self.network.macs + self.backward_flop

    @property
    def label(self) -> str:
        return f"{self.name}, {1000 * self.seconds:.0f} ms"

    def at(self, tflops: float) -> "Work":
        return replace(self, seconds=self.flop / (tflops * 1e12))


@cache
def works() -> dict[str, Work]:
    seconds = measured("WRN-28-2, separate, ms a step") / 1000
    separate = Work("WRN-28-2, separate", wide_resnet(), 64, 448, 448, 64 + 448, seconds=seconds)
    found, reached = {"separate": separate}, separate.flop / seconds / 1e12
    for name, views in (("one", 1), ("multi", 2)):
        label = "ResNet-50" if views == 1 else "ResNet-50, multi-view"
        plain = Work(label, resnet50(), 64, 320, 320 * views, 64 + 320 * views, cld=views == 2)
        found |= {f"{name}-low": plain.at(assumed("resnet_low")), f"{name}-high": plain.at(reached)}
    return found


def larger(work: Work, times: int) -> Work:
    """The same step with so many times its images."""
    sizes = {name: times * getattr(work, name) for name in ("labeled", "unlabeled", "forward", "both", "seconds")}
    return replace(work, **sizes)


@cache
def floor_seconds(network: Architecture) -> float:
    """A step cannot be shorter than its kernels' own least times, however few images there are.

    The kernels of the profile of WRN-28-2, at the time of its smallest norm kernel; others by their number of norms.
    """
    profile = json.loads((ROOT / "results/speed/h200.json").read_text())["kernels_of_faithful"]
    (small,) = [kernel for kernel in profile if kernel["kernel"] == "_finish_statistics"]
    calls = sum(kernel["calls"] for kernel in profile)
    return calls * small["ms"] / small["calls"] / 1000 * len(network.norms) / len(wide_resnet().norms)


def shared(work: Work, gpus: int) -> Work:
    """The recipe's batch divided among the GPUs."""
    return replace(work, seconds=max(work.seconds / gpus, min(work.seconds, floor_seconds(work.network))))

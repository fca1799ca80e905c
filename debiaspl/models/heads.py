"""Classifiers of networks by name."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.debias.heads import NormalisedHead
from debiaspl.kernels.norm import NormActivate

EPS = 1e-5


class NormActivateRows(nn.Module):
    """Batch norm and ReLU of rows, (N, C)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = NormActivate(width, momentum=0.1, eps=EPS, slope=0.0)
        self.norm.synchronised = True

    def forward(self, rows: Tensor) -> Tensor:
        images = rows[:, :, None, None].contiguous(memory_format=torch.channels_last)
        active: Tensor = self.norm(images)[1].flatten(1)
        return active


class HiddenHead(nn.Linear):
    """A linear classifier after one layer with batch norm and a ReLU: the first of a SimCLR projector, from which
    SimCLRv2 (Chen et al., 2020) is fine-tuned. From a start, the layer has the weights of the start's projector."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__(num_features, num_classes)
        layer = nn.Linear(num_features, num_features, bias=False)
        self.first = nn.Sequential(layer, NormActivateRows(num_features))

    def forward(self, features: Tensor) -> Tensor:
        return F.linear(self.first(features), self.weight, self.bias)


HEADS: dict[str, Callable[[int, int], nn.Linear]] = {
    "linear": nn.Linear,
    "cosine": NormalisedHead,
    "causal": partial(NormalisedHead, heads=2, scale=16.0, slack=1 / 32),
    "hidden": HiddenHead,
}


def make_head(name: str, num_features: int, num_classes: int) -> nn.Linear:
    if name not in HEADS:
        raise ValueError(f"head is {name!r}, expected one of {', '.join(HEADS)}.")
    return HEADS[name](num_features, num_classes)

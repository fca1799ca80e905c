"""Small networks on top of features, which an algorithm trains beside the student, and their moving averages."""

from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl._checks import within
from debiaspl.debias.correction import at_least_float32
from debiaspl.models.average import as_buffers
from debiaspl.models.heads import NormActivateRows


def perceptron(widths: Sequence[int], norm: bool, slope: float = 0.0) -> nn.Sequential:
    """A multi-layer perceptron of these widths, with a ReLU between layers (leaky, if ``slope`` is not 0) and, with
    ``norm``, batch norm before it. Ranks share the batch norm statistics."""
    layers: list[nn.Module] = []
    for place, (incoming, outgoing) in enumerate(pairwise(widths)):
        last = place == len(widths) - 2
        layers.append(nn.Linear(incoming, outgoing, bias=last or not norm))
        if not last:
            layers.append(NormActivateRows(outgoing) if norm else nn.LeakyReLU(slope) if slope else nn.ReLU())
    return nn.Sequential(*layers)


def unit(vectors: Tensor) -> Tensor:
    """Rows scaled to length 1, to be compared by cosine similarity."""
    return F.normalize(at_least_float32(vectors), dim=-1)


class AveragedHead(nn.Module):
    """The moving average of a head, including its batch norm statistics (EMAN), in eval mode and without gradients.

    Its values are float32 buffers: on a GPU the head itself has bfloat16 weights, in which an average would not move,
    and an average is not a trained parameter.
    """

    def __init__(self, head: nn.Module, decay: float) -> None:
        super().__init__()
        self.decay = within("key_decay", decay, "[0, 1)")
        self.head = as_buffers(deepcopy(head).eval())

    def train(self, mode: bool = True) -> "AveragedHead":
        """Stay in eval mode: the average is never trained."""
        return super().train(False)

    @torch.no_grad()
    def follow(self, head: nn.Module) -> None:
        """Update the average with the head's current values."""
        now = {**dict(head.named_parameters()), **dict(head.named_buffers())}
        for name, value in self.head.named_buffers():
            value.lerp_(now[name].to(value.dtype), 1 - self.decay)

    def forward(self, features: Tensor) -> Tensor:
        with torch.no_grad():
            projected: Tensor = self.head(features)
        return projected

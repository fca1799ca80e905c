"""Moving averages over training steps: of a network, and of an additional classifier."""

from copy import deepcopy
from typing import Self, TypeVar

import torch
from torch import Tensor, nn

from debiaspl.debias.correction import rewritten, within
from debiaspl.models.network import Network

Trained = TypeVar("Trained", bound=nn.Module)


class InEvalMode(nn.Module):
    """A module that is never trained."""

    def train(self, mode: bool = True) -> Self:
        return super().train(False)


class Average(InEvalMode):
    """An exponential moving average of a network: ``average.model``, in eval mode and without gradients.

    The weights are averaged: ``average <- decay * average + (1 - decay) * weights``. The statistics of batch norm are
    copied (EMA, which FixMatch evaluates) or, with ``statistics=True``, averaged too (EMAN: Cai et al., 2021), which
    makes the average a consistent teacher.

    EMAN's statistics lag behind the norm's own moving average too: set the network's ``norm_momentum`` to about 0.1.
    """

    def __init__(self, model: Network, decay: float = 0.999, statistics: bool = False) -> None:
        super().__init__()
        self.decay, self.statistics = within("decay", decay, "[0, 1)"), statistics
        self.model: Network = deepcopy(model).eval().requires_grad_(False)


class FurtherHead(nn.Module):
    """A linear classifier that an algorithm trains beside the network's own, on the same features, and its average.

    ``further(features)`` are the logits of the trained one. The average is updated and evaluated with the network's. It
    is a buffer: saved with the algorithm, and never trained.
    """

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(num_features, num_classes)
        nn.init.xavier_normal_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.average = as_buffers(deepcopy(self.head))

    def forward(self, features: Tensor) -> Tensor:
        return self.head(features)

    @torch.no_grad()
    def averaged(self, features: Tensor) -> Tensor:
        """Logits of the average, for features of the averaged network."""
        return self.average(features)

    @torch.no_grad()
    def begin_with(self, head: nn.Linear) -> None:
        """Copy the weights of a classifier, before the first step."""
        for own in (self.head, self.average):
            own.weight.copy_(head.weight)
            own.bias.copy_(head.bias)

    def finished(self, like: nn.Linear) -> nn.Linear:
        """The average as a classifier of the same type as ``like``, to replace it."""
        return rewritten(like, self.average.weight, self.average.bias)

    def pairs(self) -> list[tuple[Tensor, Tensor]]:
        """Each parameter with the buffer that averages it."""
        return [(self.head.weight, self.average.weight), (self.head.bias, self.average.bias)]


def further_heads(module: nn.Module) -> list[FurtherHead]:
    return [part for part in module.modules() if isinstance(part, FurtherHead)]


def as_buffers(module: Trained) -> Trained:
    """The same module with its weights turned into buffers: saved and moved with it, but never trained."""
    for part in module.modules():
        for name, value in list(part.named_parameters(recurse=False)):
            delattr(part, name)
            part.register_buffer(name, value.detach().clone())
    return module

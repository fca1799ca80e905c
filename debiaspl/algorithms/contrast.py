"""Contrastive loss without labels, on top of features: each strong view is matched with its own weak view."""

from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.debias import ranks
from debiaspl.debias.correction import at_least_float32, within
from debiaspl.models.average import as_buffers
from debiaspl.models.network import NormActivateRows

NONE = -1e4
"""Replaces the similarity of unused places: its softmax weight is 0, and 0 times it is 0."""
TEMPERATURES = "[0.001, inf)"
"""Similarities, at most 1, are then still far above NONE."""


class Contrast(nn.Module):
    """``contrast(strong, weak)``: cross-entropy of matching the features of each strong view with those of its own weak
    view, among all of the batch, on all ranks, and of earlier batches (InfoNCE: van den Oord et al., 2018; between a
    teacher's weak and a student's strong view: Zheng et al., 2021). Settings as in ``ContrastMatch``."""

    remembered: Tensor
    written: Tensor
    heads = ("contrast.projector.", "contrast.average.")
    """State that another run can start from, if the algorithm names this module ``contrast``."""

    def __init__(
        self,
        num_features: int,
        width: int = 128,
        temperature: float = 0.2,
        memory: int = 0,
        relations: float = 0.0,
        relation_temperature: float = 0.05,
        key_decay: float = 0.0,
    ) -> None:
        super().__init__()
        self.temperature = within("temperature", temperature, TEMPERATURES)
        self.relation_temperature = within("relation_temperature", relation_temperature, TEMPERATURES)
        self.relations = within("relations", relations, "[0, 1]")
        self.memory = within("memory", memory, "[0, inf)")
        self.projector = perceptron((num_features, num_features, width), norm=False)
        self.average = AveragedHead(self.projector, key_decay) if key_decay else None
        if memory:
            self.register_buffer("remembered", torch.zeros(memory, width))
            self.register_buffer("written", torch.zeros((), dtype=torch.int64))

    def forward(self, strong: Tensor, weak: Tensor) -> Tensor:
        """From features of the same images, (N, D); the weak ones get no gradient."""
        keys = self.keys(weak)
        everyone = ranks.gathered(keys)
        loss = self.match(self.queries(strong), keys, everyone)
        self.remember(everyone)
        return loss

    def queries(self, features: Tensor) -> Tensor:
        return unit(self.projector(features))

    @torch.no_grad()
    def keys(self, features: Tensor) -> Tensor:
        """Unit vectors of the teacher's features. Call it once per step, since it updates the averaged head."""
        if self.average is None:
            return unit(self.projector(features))
        self.average.follow(self.projector)
        return unit(self.average(features))

    def match(self, queries: Tensor, keys: Tensor, everyone: Tensor) -> Tensor:
        """Match query i with key i among ``everyone``, the keys of all ranks, and the memory."""
        itself = ranks.own() * len(keys) + torch.arange(len(keys), device=keys.device)
        with torch.autocast(keys.device.type, enabled=False):  # a low temperature amplifies rounding errors of bf16
            known = everyone if not self.memory else torch.cat((everyone, self.remembered.to(everyone.dtype)))
            similarity = self._without_empty(queries @ known.T / self.temperature, len(everyone))
            loss = F.cross_entropy(similarity, itself)
            if self.relations:
                near = self._without_empty(keys @ known.T / self.relation_temperature, len(everyone))
                near = near.scatter(1, itself[:, None], NONE).softmax(-1)
                loss = loss.lerp(F.cross_entropy(similarity, near), self.relations)
        return loss

    def remember(self, everyone: Tensor) -> None:
        if self.memory:
            write_over_oldest(self.written, (self.remembered, everyone))

    def _without_empty(self, similarity: Tensor, batch: int) -> Tensor:
        """Without the places of the memory, which follow the batch, that have not been written yet."""
        if not self.memory:
            return similarity
        empty = torch.arange(similarity.shape[1], device=similarity.device) - batch >= self.written
        return similarity.masked_fill(empty, NONE)


def write_over_oldest(written: Tensor, *pairs: tuple[Tensor, Tensor]) -> None:
    """For each (buffer, rows): write the rows into the buffer, (memory, ...). Add their number to ``written``."""
    (buffer, rows), *_ = pairs
    memory, count = len(buffer), len(rows)
    if count > memory:
        raise ValueError(f"memory is {memory}, but a batch has {count} images or views to store. Use at least {count}.")
    places = (written + torch.arange(count, device=rows.device)) % memory
    for buffer, rows in pairs:
        buffer.index_copy_(0, places, rows.to(buffer.dtype))
    written.add_(count)


def perceptron(widths: Sequence[int], norm: bool) -> nn.Sequential:
    """Linear layers, and between them batch norm and a ReLU, or a leaky ReLU alone."""
    layers: list[nn.Module] = []
    for incoming, outgoing in pairwise(widths[:-1]):
        layers.append(nn.Linear(incoming, outgoing, bias=not norm))
        layers.append(NormActivateRows(outgoing) if norm else nn.LeakyReLU(0.1))
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))


def unit(vectors: Tensor) -> Tensor:
    return F.normalize(at_least_float32(vectors), dim=-1)


class AveragedHead(nn.Module):
    """The moving average of a head without norms, in float32: on a GPU the head itself has bfloat16 weights, in which
    an average would not move."""

    def __init__(self, head: nn.Module, decay: float) -> None:
        super().__init__()
        self.decay = within("key_decay", decay, "[0, 1)")
        self.head = as_buffers(deepcopy(head))

    @torch.no_grad()
    def follow(self, head: nn.Module) -> None:
        for value, now in zip(self.head.buffers(), head.parameters(), strict=True):
            value.lerp_(now.to(value.dtype), 1 - self.decay)

    @torch.no_grad()
    def forward(self, features: Tensor) -> Tensor:
        return self.head(features)

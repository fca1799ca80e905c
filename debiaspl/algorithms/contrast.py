"""Telling images apart: each strong view must find its own weak view, which needs no label."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from debiaspl.algorithms.memory import write_over_oldest
from debiaspl.debias import ranks
from debiaspl.debias.correction import at_least_float32

NONE = -1e4
"""In place of the similarity to what is not there: its weight is 0, and 0 times it is 0."""
COLDEST = 1e-3
"""Temperature at which similarities, of 1 at most, are still far above that."""


class Contrast(nn.Module):
    """``contrast(strong, weak)``: cross-entropy of finding, for the features of each strong view, those of its own weak
    view among all weak views of the batch, on all ranks, and those of earlier batches (InfoNCE: van den Oord et al.,
    2018; between a teacher's weak and a student's strong view: Zheng et al., 2021).

    What the settings mean, ``ContrastMatch`` says.
    """

    remembered: Tensor
    written: Tensor

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
        for what, number in (("temperature", temperature), ("relation_temperature", relation_temperature)):
            if not number >= COLDEST:
                raise ValueError(f"{what} is {number}, expected {COLDEST} or more.")
        if not 0 <= relations <= 1:
            raise ValueError(f"relations is {relations}, expected a share of the target in [0, 1].")
        if not 0 <= key_decay < 1:
            raise ValueError(f"key_decay is {key_decay}, expected a number in [0, 1): 0 is no averaging.")
        if memory < 0:
            raise ValueError(f"memory is {memory}, expected a number of weak views, 0 for none.")
        self.temperature, self.relations, self.relation_temperature = temperature, relations, relation_temperature
        self.key_decay, self.memory = key_decay, memory
        self.projector = nn.Sequential(
            nn.Linear(num_features, num_features), nn.LeakyReLU(0.1), nn.Linear(num_features, width)
        )
        # Buffers, in float32: the parameters may be a bfloat16 copy, in which an average would not move.
        for name, value in self.projector.named_parameters():
            if key_decay:
                self.register_buffer(_averaged(name), value.detach().clone())
        if memory:
            self.register_buffer("remembered", torch.zeros(memory, width))
            self.register_buffer("written", torch.zeros((), dtype=torch.int64))

    def forward(self, strong: Tensor, weak: Tensor) -> Tensor:
        """Features of both views of the same images, (N, D); no gradient reaches the weak ones."""
        queries = F.normalize(at_least_float32(self.projector(strong)), dim=-1)
        with torch.no_grad():
            keys = F.normalize(at_least_float32(self._project_weak(weak)), dim=-1)
            everyone = ranks.gathered(keys)
        itself = ranks.own() * len(keys) + torch.arange(len(keys), device=keys.device)
        with torch.autocast(keys.device.type, enabled=False):  # a low temperature magnifies what bf16 rounds off
            known = everyone if not self.memory else torch.cat((everyone, self.remembered.to(everyone.dtype)))
            similarity = self._there(queries @ known.T / self.temperature, len(everyone))
            loss = F.cross_entropy(similarity, itself)
            if self.relations:
                if len(everyone) < 2:
                    raise ValueError(
                        "relations between images need two or more in a batch; found 1. "
                        "Set a larger unlabeled_batch, or relations=0."
                    )
                near = self._there(keys @ known.T / self.relation_temperature, len(everyone))
                near = near.scatter(1, itself[:, None], NONE).softmax(-1)
                loss = loss.lerp(F.cross_entropy(similarity, near), self.relations)
        if self.memory:
            write_over_oldest(self.written, (self.remembered, everyone))
        return loss

    def _project_weak(self, features: Tensor) -> Tensor:
        if not self.key_decay:
            projected: Tensor = self.projector(features)
            return projected
        averages = {name: self.get_buffer(_averaged(name)) for name, _ in self.projector.named_parameters()}
        for name, value in self.projector.named_parameters():
            averages[name].lerp_(value.to(averages[name].dtype), 1 - self.key_decay)
        projected = functional_call(self.projector, averages, (features,))
        return projected

    def _there(self, similarity: Tensor, batch: int) -> Tensor:
        """Without places of the memory, which lie behind the batch, that have not been written yet."""
        if not self.memory:
            return similarity
        empty = torch.arange(similarity.shape[1], device=similarity.device) - batch >= self.written
        return similarity.masked_fill(empty, NONE)


def _averaged(name: str) -> str:
    return f"average_{name.replace('.', '_')}"

"""SwAV (Caron et al., 2020): features without labels, from cluster assignments that two views must agree on."""

from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.algorithms.algorithm import Batch, Models, SelfSupervised, Views
from debiaspl.algorithms.contrast import TEMPERATURES, perceptron, unit, write_over_oldest
from debiaspl.augment.cropcolor import AREA, checked_area, small_crops
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import within


class SwAV(SelfSupervised):
    """The student predicts from each strong view the prototypes that the other one is assigned to.

    The assignment of a view, its code, comes from its similarity to the prototypes, balanced over the batch of all
    ranks and a queue of earlier views, so that all prototypes are used equally (Sinkhorn and Knopp, 1967). Multi-crop:
    small crops of further views, at a quarter of the cost, predict the codes of the two large ones.

    Args:
        prototypes: number of prototypes; several times the number of classes.
        width: width of the space in which views and prototypes are compared, by cosine.
        temperature: temperature of the predictions.
        code_temperature: temperature of the codes (epsilon); higher values make codes more alike.
        rounds: iterations of Sinkhorn and Knopp.
        small_views: additional views of half the size; 0: no multi-crop; the paper: 6.
        small_area: smallest and largest share of a view in a small crop.
        queue: number of earlier views; the paper: 3,840 for batches of 256, 0 for 4,096.
        queue_from: share of the training from which on they are used; the paper: 15 of 400 epochs.
        frozen_until: share of the training in which the prototypes stay as they are; the paper: 1 of 400 epochs.
    """

    heads = ("projector.", "prototypes")
    own_settings = MappingProxyType({"small_views": 6, "queue": 3840})
    advice = "Set a lower code_temperature: if all codes are alike, nothing is learned. Else a smaller learning_rate."
    remembered: Tensor
    written: Tensor

    def __init__(
        self,
        correction: Correction | None = None,
        num_features: int = 512,
        prototypes: int = 512,
        width: int = 128,
        temperature: float = 0.1,
        code_temperature: float = 0.05,
        rounds: int = 3,
        small_views: int = 0,
        small_area: tuple[float, ...] = AREA,
        queue: int = 0,
        queue_from: float = 15 / 400,
        frozen_until: float = 1 / 400,
    ) -> None:
        super().__init__(correction)
        self.views = Views(strong=2 + within("small_views", small_views, "[0, inf)"))
        self.small_area = checked_area(small_area)
        self.queue, self.queue_from = within("queue", queue, "[0, inf)"), within("queue_from", queue_from, "[0, 1]")
        self.frozen_until = within("frozen_until", frozen_until, "[0, 1]")
        self.temperature = within("temperature", temperature, TEMPERATURES)
        self.code_temperature = within("code_temperature", code_temperature, TEMPERATURES)
        self.rounds = within("rounds", rounds, "[1, inf)")
        self.projector = perceptron((num_features, num_features, width), norm=True)
        self.prototypes = nn.Parameter(torch.randn(within("prototypes", prototypes, "[2, inf)"), width))
        if queue:
            self.register_buffer("remembered", torch.zeros(2, queue, width))
            self.register_buffer("written", torch.zeros((), dtype=torch.int64))

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        large, small = batch.strong[:2], batch.strong[2:]
        # Fixed means without gradient: weight decay changes their length, which does not matter.
        frozen = batch.progress < self.frozen_until
        prototypes = unit(torch.where(frozen, self.prototypes.detach(), self.prototypes)).T
        projected = list(self._projected(models, torch.cat(large)).chunk(2))
        codes = self._codes([view.detach() for view in projected], prototypes.detach(), batch.progress)
        if small:
            crops = small_crops(small, self.small_area, batch.generator)
            projected += self._projected(models, crops).chunk(len(small))
        with torch.autocast(prototypes.device.type, enabled=False):
            similarity = [view @ prototypes for view in projected]
        terms = [
            F.cross_entropy(view / self.temperature, code)
            for number, code in enumerate(codes)
            for other, view in enumerate(similarity)
            if other != number
        ]
        return {"clusters": torch.stack(terms).mean()}

    def _projected(self, models: Models, views: Tensor) -> Tensor:
        return unit(self.projector(models.student.embed(views)))

    def _codes(self, views: list[Tensor], prototypes: Tensor, progress: Tensor) -> list[Tensor]:
        """Of both views, which are then remembered."""
        everyone = [ranks.gathered(view) for view in views]
        with torch.autocast(prototypes.device.type, enabled=False):
            if self.queue <= len(everyone[0]):  # a large batch needs none
                return [self.codes(view @ prototypes) for view in everyone]
            used = (self.written >= self.queue) & (progress >= self.queue_from)
            codes = [
                self.codes(torch.cat((view, old.to(view.dtype))) @ prototypes, len(view), used)
                for view, old in zip(everyone, self.remembered, strict=True)
            ]
        write_over_oldest(self.written, *((old, view) for old, view in zip(self.remembered, everyone, strict=True)))
        return codes

    def codes(self, whole: Tensor, count: int | None = None, used: Tensor | None = None) -> Tensor:
        """The codes of this rank, whose rows sum to 1, from the similarities of all; prototypes have equal sums.
        Of more than ``count`` rows the others, from the queue, only count if ``used``."""
        # In logarithms: at low temperatures an exponential would overflow, or underflow for a whole prototype.
        code, absent = whole / self.code_temperature, whole.new_zeros(())
        if count is not None and used is not None:
            old = torch.arange(len(whole), device=whole.device) >= count
            absent = torch.where(old & ~used, -1e9, 0.0)[:, None].to(whole.dtype)
        for _ in range(self.rounds):
            code = code + absent
            code = code - code.logsumexp(0, keepdim=True)
            code = code - code.logsumexp(1, keepdim=True)
        return ranks.own_part(code[:count].exp())

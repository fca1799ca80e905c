"""SwAV (Caron et al., 2020): features without labels, from cluster assignments that two views must agree on."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl._checks import within
from debiaspl.algorithms.algorithm import Batch, Models, SelfSupervised, Views
from debiaspl.algorithms.contrast import COLDEST, TEMPERATURES
from debiaspl.algorithms.heads import perceptron, unit
from debiaspl.debias import Correction, ranks


class SwAV(SelfSupervised):
    """The student predicts from each strong view the prototypes that the other one is assigned to.

    The assignment of a view, its code, comes from its similarity to the prototypes, balanced over the batch of all
    ranks so that all prototypes are used equally (Sinkhorn and Knopp, 1967). Multi-crop: additional views of half the
    size, at a quarter of the cost, predict the codes of the two large ones.

    Args:
        prototypes: number of prototypes; several times the number of classes.
        width: width of the space in which views and prototypes are compared, by cosine similarity.
        temperature: temperature of the predictions.
        code_temperature: temperature of the codes (epsilon); higher values make codes more alike.
        rounds: iterations of Sinkhorn and Knopp.
        small_views: additional views of half the size; 0: no multi-crop.
    """

    heads = ("projector.", "prototypes")

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
    ) -> None:
        super().__init__(correction)
        self.views = Views(strong=2 + within("small_views", small_views, "[0, inf)"))
        self.temperature = within("temperature", temperature, TEMPERATURES)
        self.code_temperature = within("code_temperature", code_temperature, TEMPERATURES)
        self.rounds = within("rounds", rounds, "[1, inf)")
        colder = max(code_temperature / 2.5, COLDEST)
        self.advice = (
            f"Set a lower code_temperature, such as {colder:.2g} (it is {code_temperature:g}): if codes are nearly "
            "the same for all images, nothing is learned. If that is not enough, try a smaller learning_rate."
        )
        self.projector = perceptron((num_features, num_features, width), norm=True)
        self.prototypes = nn.Parameter(torch.randn(within("prototypes", prototypes, "[2, inf)"), width))

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        large, small = batch.strong[:2], batch.strong[2:]
        similarity = list(self._similarity(models, torch.cat(large)).chunk(2))
        codes = [self.codes(view.detach()) for view in similarity]
        if small:
            halved = F.interpolate(torch.cat(small), scale_factor=0.5, mode="area")
            similarity += self._similarity(models, halved).chunk(len(small))
        terms = [
            F.cross_entropy(view / self.temperature, code)
            for number, code in enumerate(codes)
            for other, view in enumerate(similarity)
            if other != number
        ]
        return {"clusters": torch.stack(terms).mean()}

    def _similarity(self, models: Models, views: Tensor) -> Tensor:
        """Cosines of views and prototypes, (N, K)."""
        projected = unit(self.projector(models.student.embed(views)))
        with torch.autocast(projected.device.type, enabled=False):
            return projected @ unit(self.prototypes).T

    def codes(self, similarity: Tensor) -> Tensor:
        """This rank's rows of the codes of all ranks: rows sum to 1, and all prototypes have the same total."""
        whole = ranks.gathered(similarity)
        # In logarithms: at low temperatures an exponential would overflow, or underflow for a whole prototype.
        code = whole / self.code_temperature
        for _ in range(self.rounds):
            code = code - code.logsumexp(0, keepdim=True)
            code = code - code.logsumexp(1, keepdim=True)
        return ranks.own_part(code.exp())

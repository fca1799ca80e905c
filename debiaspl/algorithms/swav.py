"""SwAV (Caron et al., 2020): features without a label, from clusters that two views must agree on."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.algorithms.algorithm import Batch, Models, Views
from debiaspl.algorithms.contrast import COLDEST, check_temperature
from debiaspl.algorithms.heads import perceptron, unit
from debiaspl.algorithms.self_supervised import SelfSupervised
from debiaspl.debias import Correction, ranks


class SwAV(SelfSupervised):
    """From each strong view the student predicts which prototypes the other one belongs to.

    What a view belongs to, its code, comes from its similarity to the prototypes, evened out over the batch of all
    ranks, so that all prototypes are used alike (Sinkhorn and Knopp, 1967). Multi-crop: further views of half the size,
    which cost a quarter, predict the codes of the two large ones.

    Args:
        prototypes: how many; several times the number of classes.
        width: of the space in which views and prototypes are compared, by cosine.
        temperature: of the predictions.
        code_temperature: of the codes (epsilon); higher ones are more alike.
        rounds: of Sinkhorn and Knopp.
        small_views: further views of half the size; 0: no multi-crop.
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
        if prototypes < 2 or rounds < 1 or small_views < 0:
            raise ValueError(
                f"prototypes is {prototypes}, rounds {rounds} and small_views {small_views}; expected 2 or more "
                "prototypes, 1 or more rounds and 0 or more small views."
            )
        self.views = Views(strong=2 + small_views)
        self.temperature = check_temperature("temperature", temperature)
        self.code_temperature = check_temperature("code_temperature", code_temperature)
        self.rounds = rounds
        colder = max(code_temperature / 2.5, COLDEST)
        self.advice = (
            f"Set a lower code_temperature, such as {colder:.2g} (it is {code_temperature:g}): codes that are nearly "
            "alike for all images teach nothing. If that is not enough, try a smaller learning_rate."
        )
        self.projector = perceptron((num_features, num_features, width), norm=True)
        self.prototypes = nn.Parameter(torch.randn(prototypes, width))

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
        """This rank's rows of the codes of all ranks: every row sums to 1, and every prototype has as large a share."""
        whole = ranks.gathered(similarity)
        # In logs: at low temperatures an exponential would overflow, or leave a prototype with nothing.
        code = whole / self.code_temperature
        for _ in range(self.rounds):
            code = code - code.logsumexp(0, keepdim=True)
            code = code - code.logsumexp(1, keepdim=True)
        return ranks.own_part(code.exp())

"""SimCLR (Chen et al., 2020): contrastive features without labels and without a teacher."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models, SelfSupervised
from debiaspl.algorithms.contrast import NONE, TEMPERATURES, perceptron, unit
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import within


class SimCLR(SelfSupervised):
    """Each of two strong views is matched with the other one, among all views of the batch, of all ranks (NT-Xent).

    Negatives come only from the batch, so it should be large: 512 images or more.

    Args:
        layers: layers of the projector; SimCLRv2 has 3, and is fine-tuned from the first: --set head=hidden.
        width: width of the space in which views are compared, by cosine.
        temperature: temperature of the similarities; lower values focus on the nearest images.
    """

    heads = ("projector.",)
    advice = "Try a smaller learning_rate first, then a temperature of 0.1 to 0.5 and a larger unlabeled_batch."

    def __init__(
        self,
        correction: Correction | None = None,
        num_features: int = 512,
        width: int = 128,
        layers: int = 2,
        temperature: float = 0.5,
    ) -> None:
        super().__init__(correction)
        self.temperature = within("temperature", temperature, TEMPERATURES)
        self.projector = perceptron((*[num_features] * within("layers", layers, "[2, inf)"), width), norm=True)

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        features = models.student.embed(torch.cat(batch.strong))
        own = unit(self.projector(features))
        everyone = ranks.gathered_with_gradient(own)
        itself = ranks.own() * len(own) + torch.arange(len(own), device=own.device)
        other = itself.roll(len(own) // 2)
        with torch.autocast(own.device.type, enabled=False):  # a low temperature amplifies rounding errors of bf16
            similarity = own @ everyone.T / self.temperature
            loss = F.cross_entropy(similarity.scatter(1, itself[:, None], NONE), other)
        return {"contrast": loss}

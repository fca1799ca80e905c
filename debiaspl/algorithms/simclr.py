"""SimCLR (Chen et al., 2020): features without a label, and without a teacher."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models
from debiaspl.algorithms.contrast import NONE, check_temperature
from debiaspl.algorithms.heads import perceptron, unit
from debiaspl.algorithms.self_supervised import SelfSupervised
from debiaspl.debias import Correction, ranks


class SimCLR(SelfSupervised):
    """Each of two strong views must find the other one among all views of the batch, of all ranks (NT-Xent).

    Other images come from the batch alone, so that it should be large: 512 images or more.

    Args:
        width: of the space in which views are compared, by cosine.
        temperature: of the similarities; lower ones look at the nearest images alone.
    """

    heads = ("projector.",)

    def __init__(
        self,
        correction: Correction | None = None,
        num_features: int = 512,
        width: int = 128,
        temperature: float = 0.5,
    ) -> None:
        super().__init__(correction)
        self.temperature = check_temperature("temperature", temperature)
        self.advice = (
            f"Try a smaller learning_rate first, then a temperature of 0.1 to 0.5 (it is {temperature:g}) and a larger "
            "unlabeled_batch."
        )
        self.projector = perceptron((num_features, num_features, width), norm=True)

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        features = models.student.embed(torch.cat(batch.strong))
        own = unit(self.projector(features))
        everyone = ranks.gathered_with_gradient(own)
        count = len(own)
        itself = ranks.own() * count + torch.arange(count, device=own.device)
        other = ranks.own() * count + torch.arange(count, device=own.device).roll(count // 2)
        with torch.autocast(own.device.type, enabled=False):  # a low temperature magnifies what bf16 rounds off
            similarity = own @ everyone.T / self.temperature
            loss = F.cross_entropy(similarity.scatter(1, itself[:, None], NONE), other)
        return {"contrast": loss}

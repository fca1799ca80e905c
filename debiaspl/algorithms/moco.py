"""MoCo v2 (Chen et al., 2020): contrastive features without labels. With average_statistics=true it is EMAN's."""

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models, SelfSupervised
from debiaspl.algorithms.contrast import Contrast
from debiaspl.debias import Correction, ranks


class MoCo(SelfSupervised):
    """The student's features of one strong view are matched with the teacher's of the other, among those of the other
    images of the batch, of all ranks, and of earlier batches. Each of the two views is the query once.

    Args:
        width: width of the space in which views are compared, by cosine.
        temperature: temperature of the similarities; lower values focus on the nearest images.
        memory: number of views of earlier batches used as negatives.
        key_decay: decay of the moving average of the teacher's head.
    """

    teacher = "average"
    needs_average = True
    heads = Contrast.heads
    advice = "Try a smaller learning_rate first, then a temperature of 0.1 to 0.5 and a larger memory."

    def __init__(
        self,
        correction: Correction | None = None,
        num_features: int = 512,
        width: int = 128,
        temperature: float = 0.2,
        memory: int = 4096,
        key_decay: float = 0.99,
    ) -> None:
        super().__init__(correction)
        self.contrast = Contrast(num_features, width, temperature, memory, key_decay=key_decay)

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        views = torch.cat(batch.strong)
        with torch.no_grad():
            keys = self.contrast.keys(models.teacher.embed(views)).chunk(2)
        queries = self.contrast.queries(models.student.embed(views)).chunk(2)
        everyone = [ranks.gathered(view) for view in keys]
        losses = [self.contrast.match(queries[view], keys[1 - view], everyone[1 - view]) for view in (0, 1)]
        self.contrast.remember(torch.cat(everyone))
        return {"contrast": torch.stack(losses).mean()}

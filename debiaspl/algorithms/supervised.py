"""The baseline every other algorithm must beat: the labeled images alone."""

import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models


class Supervised(Algorithm):
    """Cross-entropy on the labeled images; unlabeled images are not looked at.

    A correction learns from the predictions on the labeled images, and its margin applies to their loss.
    """

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits = models.student(batch.labeled)
        self.correction(logits)
        return {"labeled": F.cross_entropy(self.correction.margin(logits), batch.labels)}

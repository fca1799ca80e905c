"""The baseline every other algorithm must beat: the labeled images alone."""

from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models
from debiaspl.algorithms.consistency import labeled_loss


class Supervised(Algorithm):
    """Cross-entropy on the labeled images; unlabeled images are not looked at.

    A correction of the labeled loss or of the classifier applies; one of pseudo-labels has nothing to correct here.
    """

    makes_pseudo_labels = False

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        return {"labeled": labeled_loss(self.correction, models.student(batch.labeled), batch.labels)}

"""The baseline for all algorithms: learn only from the labeled images."""

from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models


class Supervised(Algorithm):
    """Cross-entropy on the labeled images; unlabeled images are not used.

    A correction of the labeled loss or of the classifier applies; there are no pseudo-labels to correct.
    """

    makes_pseudo_labels = False

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        return {"labeled": self.labeled_loss(models.student(batch.labeled), batch.labels)}

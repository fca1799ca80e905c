"""Pseudo-Label (Lee, 2013): the network's confident predictions become labels for the same images."""

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views, predict_weak
from debiaspl.debias import Correction
from debiaspl.debias.correction import within


class PseudoLabel(Algorithm):
    """The same weak view is used for the label and for the loss."""

    views = Views(weak=1)

    def __init__(
        self, correction: Correction | None = None, threshold: float = 0.95, unlabeled_weight: float = 1.0
    ) -> None:
        super().__init__(correction)
        self.threshold, self.unlabeled_weight = within("threshold", threshold, "[0, 1]"), unlabeled_weight

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        both = models.student(torch.cat([batch.labeled, batch.weak[0]]))
        logits, logits_weak = both.split([len(batch.labeled), len(batch.weak[0])])

        labeling = logits_weak if models.teacher is models.student else predict_weak(models, batch.weak)[0]
        confidence, label = self.correction(labeling).max(-1)
        keep = confidence >= self.threshold

        self.report_labels(labeling, confidence, label, keep)
        return {
            "labeled": self.labeled_loss(logits, batch.labels),
            "unlabeled": self.unlabeled_weight * self.unlabeled_loss(logits_weak, label, keep),
        }

"""Pseudo-Label (Lee, 2013): the network's confident predictions are labels for the same images."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views, check_threshold
from debiaspl.debias import Correction
from debiaspl.debias.correction import at_least_float32


class PseudoLabel(Algorithm):
    """One weak view, which is both labeled and learned from.

    Args:
        correction: what is done to the predictions before they become labels; nothing, if not given.
        threshold: predictions less confident than this are not used (tau).
        unlabeled_weight: weight of the unlabeled loss (lambda_u).
    """

    views = Views(weak=1)

    def __init__(
        self, correction: Correction | None = None, threshold: float = 0.95, unlabeled_weight: float = 1.0
    ) -> None:
        super().__init__(correction)
        self.threshold, self.unlabeled_weight = check_threshold(threshold), unlabeled_weight

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        both = models.student(torch.cat([batch.labeled, batch.weak[0]]))
        logits, logits_weak = both.split([len(batch.labeled), len(batch.weak[0])])

        labeling = logits_weak
        if models.teacher is not models.student:
            with torch.no_grad():
                labeling = models.teacher(batch.weak[0])
        confidence, label = self.correction(labeling).max(-1)
        keep = confidence >= self.threshold
        unlabeled = F.cross_entropy(self.correction.margin(logits_weak, label), label, reduction="none") * keep

        self.report(
            kept=keep,
            confidence=confidence.mean(),
            pseudo_label=label,
            marginal=at_least_float32(labeling).softmax(-1).mean(0),
        )
        return {
            "labeled": F.cross_entropy(self.correction.labeled_margin(logits, batch.labels), batch.labels),
            "unlabeled": self.unlabeled_weight * unlabeled.mean(),
        }

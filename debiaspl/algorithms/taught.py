"""FixMatch beside a zero-shot model: where the student is not sure, the model's label stands in for its own."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models
from debiaspl.algorithms.fixmatch import FixMatch
from debiaspl.algorithms.predict import predict
from debiaspl.debias import Correction
from debiaspl.debias.correction import at_least_float32


class TaughtFixMatch(FixMatch):
    """FixMatch whose discarded images take a given label, where there is one: few labels and a vision-language model.

    Args:
        taught: int64, (N,): a label for each unlabeled image, by its position; -1 where the model is not sure either.
        correction, threshold, unlabeled_weight, joint: as in FixMatch.
    """

    taught: Tensor

    def __init__(
        self,
        taught: Tensor,
        correction: Correction | None = None,
        threshold: float = 0.95,
        unlabeled_weight: float = 1.0,
        joint: bool = True,
    ) -> None:
        super().__init__(correction, threshold, unlabeled_weight, joint=joint)
        self.register_buffer("taught", taught.clone())

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits, (logits_weak,), (logits_strong,) = predict(models, batch, self.joint)
        probabilities = self.correction(logits_weak)
        confidence, own = probabilities.max(-1)
        sure, taught = confidence >= self.threshold, self.taught[batch.positions]
        label = torch.where(~sure & (taught >= 0), taught, own)
        keep = sure | (taught >= 0)

        self._report(at_least_float32(logits_weak), probabilities)
        self.monitors |= {"kept": keep, "pseudo_label": label, "taught": (keep & ~sure).float().mean()}
        unlabeled = F.cross_entropy(self.correction.margin(logits_strong, label), label, reduction="none")
        return {
            "labeled": F.cross_entropy(self.correction.labeled_margin(logits, batch.labels), batch.labels),
            "unlabeled": self.unlabeled_weight * (unlabeled * keep).mean(),
        }

"""FixMatch beside another model: where the student is not sure, the label of the other one stands in for its own."""

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views, check_threshold
from debiaspl.algorithms.consistency import labeled_loss, report_labels, unlabeled_loss
from debiaspl.algorithms.predict import predict
from debiaspl.data import Hints
from debiaspl.debias import Correction


class TaughtFixMatch(Algorithm):
    """FixMatch whose discarded images take a label of another model, where that is sure of it: a few labels and a
    zero-shot model. What the other model says are the hints of the task; they are part of the run's state. Where the
    task has none, labels spread over the graph of the features stand in for them.

    Args:
        hints: a label for each unlabeled image, and how sure the other model is of it.
        correction: what is done to the predictions before they become labels; nothing, if not given.
        sure: confidence at which a hint is taken; the authors' scripts use 0.4.
        threshold: labels of the student less confident than this are not used (tau).
        unlabeled_weight: weight of the unlabeled loss (lambda_u).
        joint: weak views share the student's batch, and so its batch norm, with the others.
    """

    views = Views(weak=1, strong=1)
    hints_from_graph = True
    taught: Tensor

    def __init__(
        self,
        hints: Hints | None = None,
        correction: Correction | None = None,
        sure: float = 0.4,
        threshold: float = 0.95,
        unlabeled_weight: float = 1.0,
        joint: bool = True,
    ) -> None:
        super().__init__(correction)
        if hints is None:
            raise ValueError(
                "taught learns from the hints of another model, and this task has none. They come with "
                "debiaspl zeroshot --labels, or in Python with Task(..., hints=Hints(label, confidence))."
            )
        if not 0 <= sure <= 1:
            raise ValueError(f"sure is {sure}, expected a confidence in [0, 1]; the authors' scripts use 0.4.")
        self.threshold, self.unlabeled_weight, self.joint = check_threshold(threshold), unlabeled_weight, joint
        self.register_buffer("taught", torch.where(hints.confidence >= sure, hints.label, -1))

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits, (logits_weak,), (logits_strong,) = predict(models, batch, self.joint)
        confidence, own = self.correction(logits_weak).max(-1)
        sure, taught = confidence >= self.threshold, self.taught[batch.positions]
        label = torch.where(~sure & (taught >= 0), taught, own)
        keep = sure | (taught >= 0)

        report_labels(self, logits_weak, confidence, label, keep, taught=(keep & ~sure).float().mean())
        return {
            "labeled": labeled_loss(self.correction, logits, batch.labels),
            "unlabeled": self.unlabeled_weight * unlabeled_loss(self.correction, logits_strong, label, keep),
        }

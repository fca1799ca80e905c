"""FixMatch with a second model: where the student is not confident, the other model's label is used."""

import torch
from torch import Tensor

from debiaspl._checks import within
from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views
from debiaspl.algorithms.predict import predict
from debiaspl.data import Hints
from debiaspl.debias import Correction


class TaughtFixMatch(Algorithm):
    """FixMatch that labels images below the threshold with another model, if that model is confident: for few labels
    and a zero-shot model. The other model's labels are the hints of the task; they are part of the run's state. If the
    task has none, labels propagated over the graph of the features are used.

    Args:
        hints: label and confidence of the other model for each unlabeled image.
        sure: minimum confidence of a hint; the authors' scripts use 0.4.
        threshold: labels of the student less confident than this are not used (tau).
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
                "taught learns from the hints of another model, but this task has none. Use "
                "debiaspl zeroshot --labels, or in Python Task(..., hints=Hints(label, confidence))."
            )
        self.threshold = within("threshold", threshold, "[0, 1]")
        self.unlabeled_weight, self.joint = unlabeled_weight, joint
        self.register_buffer("taught", torch.where(hints.confidence >= within("sure", sure, "[0, 1]"), hints.label, -1))

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits, (logits_weak,), (logits_strong,) = predict(models, batch, self.joint)
        confidence, predicted = self.correction(logits_weak).max(-1)
        confident, hint = confidence >= self.threshold, self.taught[batch.positions]
        label = torch.where(~confident & (hint >= 0), hint, predicted)
        keep = confident | (hint >= 0)

        self.report_labels(logits_weak, confidence, label, keep, taught=(keep & ~confident).float().mean())
        return {
            "labeled": self.labeled_loss(logits, batch.labels),
            "unlabeled": self.unlabeled_weight * self.unlabeled_loss(logits_strong, label, keep),
        }

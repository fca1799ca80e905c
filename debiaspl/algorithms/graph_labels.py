"""Learning only from labels propagated over a graph of nearest neighbours (Zhou et al., 2004)."""

from torch import Tensor

from debiaspl._checks import within
from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views
from debiaspl.algorithms.predict import predict
from debiaspl.data import Hints
from debiaspl.debias import Correction


class GraphLabels(Algorithm):
    """The strong view of every unlabeled image learns the label that the graph gave it before the first step.

    The network smooths out the graph's errors, and can label images that were not in the graph. The labels do not
    change during training; ``fixmatch`` with ``first_classifier=graph`` makes its own labels after that start, and is
    usually better. The correction learns from the weak views and adds its margin to the loss; labels are the graph's.

    The features must be good before the first step: from a pretrained start or encoder.

    Args:
        hints: label of each unlabeled image, with the graph's confidence.
        correction: its margin is added to the loss; none by default.
    """

    views = Views(weak=1, strong=1)
    hints_from_graph = True
    taught: Tensor
    sureness: Tensor

    def __init__(
        self,
        hints: Hints | None = None,
        correction: Correction | None = None,
        threshold: float = 0.0,
        unlabeled_weight: float = 1.0,
        joint: bool = False,
    ) -> None:
        super().__init__(correction)
        if hints is None:
            raise ValueError(
                "graph learns from labels propagated over a graph of features, but this task has no such labels."
            )
        self.threshold = within("threshold", threshold, "[0, 1]")
        self.unlabeled_weight, self.joint = unlabeled_weight, joint
        self.register_buffer("taught", hints.label.clone())
        self.register_buffer("sureness", hints.confidence.float().clone())

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits, (logits_weak,), (logits_strong,) = predict(models, batch, self.joint)
        self.correction(logits_weak)  # it learns; the labels are the graph's
        label, confidence = self.taught[batch.positions], self.sureness[batch.positions]
        kept = (confidence >= self.threshold) & (label >= 0)  # another model's hints may have no label
        label = label.clamp_min(0)
        self.report_labels(logits_weak, confidence, label, kept)
        return {
            "labeled": self.labeled_loss(logits, batch.labels),
            "unlabeled": self.unlabeled_weight * self.unlabeled_loss(logits_strong, label, kept),
        }

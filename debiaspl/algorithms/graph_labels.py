"""Learning from labels that spread over a graph of nearest neighbours (Zhou et al., 2004), and from nothing else."""

from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views, check_threshold
from debiaspl.algorithms.consistency import labeled_loss, report_labels, unlabeled_loss
from debiaspl.algorithms.predict import predict
from debiaspl.data import Hints
from debiaspl.debias import Correction


class GraphLabels(Algorithm):
    """The strong view of every unlabeled image learns the label that the graph gave it before the first step.

    The network smooths over the graph's mistakes, and gives labels to images that the graph never saw. Labels do not
    change while it learns; ``fixmatch`` with ``first_classifier=graph`` goes on to labels of its own, and is usually
    better. The correction learns from the weak views and gives the loss its margin; labels are the graph's.

    The features must be good before the first step: those of a start, or of a pretrained encoder.

    Args:
        hints: a label for each unlabeled image, and how sure of it the graph is.
        correction: of the loss; nothing, if not given.
        threshold: labels that the graph is less sure of than this are not used.
        unlabeled_weight: weight of the unlabeled loss (lambda_u).
        joint: weak views share the student's batch, and so its batch norm, with the others.
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
                "graph learns from labels that spread over a graph, and there are no features to make one."
            )
        self.threshold, self.unlabeled_weight, self.joint = check_threshold(threshold), unlabeled_weight, joint
        self.register_buffer("taught", hints.label.clone())
        self.register_buffer("sureness", hints.confidence.float().clone())

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits, (logits_weak,), (logits_strong,) = predict(models, batch, self.joint)
        self.correction(logits_weak)  # learns; the labels are the graph's
        label, confidence = self.taught[batch.positions], self.sureness[batch.positions]
        kept = (confidence >= self.threshold) & (label >= 0)  # hints of another model may be without a label
        label = label.clamp_min(0)
        report_labels(self, logits_weak, confidence, label, kept)
        return {
            "labeled": labeled_loss(self.correction, logits, batch.labels),
            "unlabeled": self.unlabeled_weight * unlabeled_loss(self.correction, logits_strong, label, kept),
        }

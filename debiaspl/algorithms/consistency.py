"""What FixMatch and its kin have in common: confident labels of weak views, and the loss of strong views with them."""

import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm
from debiaspl.debias import Correction
from debiaspl.debias.correction import at_least_float32


def consistency(correction: Correction, probabilities: Tensor, logits_strong: Tensor, threshold: float) -> Tensor:
    """Cross-entropy with the hard labels, over the confident ones, divided by the size of the whole batch."""
    confidence, label = probabilities.max(-1)
    keep = confidence >= threshold
    return (F.cross_entropy(correction.margin(logits_strong, label), label, reduction="none") * keep).mean()


def labeled_loss(correction: Correction, logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(correction.labeled_margin(logits, labels), labels)


def report_labels(algorithm: Algorithm, logits_weak: Tensor, probabilities: Tensor, threshold: float) -> None:
    """Show which labels are kept, how confident they are, and what the model predicts without a correction."""
    confidence, label = probabilities.max(-1)
    algorithm.report(
        kept=confidence >= threshold,
        confidence=confidence.mean(),
        pseudo_label=label,
        marginal=at_least_float32(logits_weak).softmax(-1).mean(0),
    )

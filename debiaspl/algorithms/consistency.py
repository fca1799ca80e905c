"""Functions shared by FixMatch and similar algorithms: labeled and unlabeled loss, and logged values."""

import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm
from debiaspl.debias import Correction
from debiaspl.debias.correction import at_least_float32


def labeled_loss(correction: Correction, logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(correction.labeled_margin(logits, labels), labels)


def unlabeled_loss(correction: Correction, logits: Tensor, label: Tensor, weight: Tensor) -> Tensor:
    """Cross-entropy with hard labels, weighted per image and divided by the size of the whole batch."""
    return (F.cross_entropy(correction.margin(logits, label), label, reduction="none") * weight).mean()


def report_labels(
    algorithm: Algorithm, logits_weak: Tensor, confidence: Tensor, label: Tensor, kept: Tensor, **others: Tensor
) -> None:
    """Log which labels are kept, how confident they are, and what the model predicts without a correction."""
    marginal = at_least_float32(logits_weak).softmax(-1).mean(0)
    algorithm.report(kept=kept, confidence=confidence.mean(), pseudo_label=label, marginal=marginal, **others)

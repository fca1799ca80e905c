"""Logit adjustment (Menon et al., 2021): in the loss, or after training."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from debiaspl.debias.correction import (
    LABEL_SHARES,
    Correction,
    at_least_float32,
    checked_counts,
    rewritten,
    within,
)


class _Adjustment(Correction):
    """Holds ``tau * log(pi)``, where ``pi`` are the class shares among the labels."""

    takes_out = LABEL_SHARES
    adjustment: Tensor

    def __init__(self, class_counts: Sequence[int], tau: float = 1.0) -> None:
        super().__init__()
        self.tau = float(within("tau", tau, "[0, inf)", "0 adjusts nothing, the paper uses 1"))
        counts = checked_counts(class_counts)
        self.register_buffer("adjustment", self.tau * (counts / counts.sum()).log(), persistent=False)


class LogitAdjustment(_Adjustment):
    """The loss uses ``z + tau * log(pi)``, so that rare classes must win by a larger margin during training.

    Both losses are adjusted, labeled and unlabeled. Pseudo-labels come from the plain logits, which this loss trains to
    be balanced.

    Args:
        class_counts: number of labels per class; their shares are the paper's pi.
        tau: strength of the adjustment; 1 makes the loss consistent for the balanced error, 0 changes nothing.
    """

    def margin(self, strong_logits: Tensor, labels: Tensor | None = None) -> Tensor:
        return at_least_float32(strong_logits) + self.adjustment

    def labeled_margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        return at_least_float32(logits) + self.adjustment


class PosthocLogitAdjustment(_Adjustment):
    """The trained classifier returns ``f - tau * log(pi)``: its bias is raised for classes with few labels.

    Training does not change.

    Args:
        class_counts: number of labels per class; their shares are the paper's pi.
        tau: strength of the adjustment; 1 follows the paper's theory, 0 changes nothing.
    """

    @torch.no_grad()
    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        adjustment = self.adjustment.to(head.weight)
        return rewritten(head, head.weight, -adjustment if head.bias is None else head.bias - adjustment)

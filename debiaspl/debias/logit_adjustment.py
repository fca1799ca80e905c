"""Logit adjustment (Menon et al., 2021): in the loss, or after training."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from debiaspl.debias.correction import LABEL_SHARES, Correction, at_least_float32, rewritten, within
from debiaspl.debias.running import LABELS, shares_of


class _Adjustment(Correction):
    takes_out = LABEL_SHARES
    adjustment: Tensor

    def __init__(self, class_counts: Sequence[int], tau: float = 1.0) -> None:
        super().__init__()
        self.tau = float(within("tau", tau, "[0, inf)"))
        self.register_buffer("adjustment", self.tau * shares_of(LABELS, class_counts).log(), persistent=False)


class LogitAdjustment(_Adjustment):
    """Both losses use ``z + tau * log(pi)``, so that rare classes must win by a larger margin during training.

    ``pi`` are the class shares among the labels. Pseudo-labels come from the plain logits, which the loss balances.

    Args:
        tau: strength of the adjustment; 1 makes the loss consistent for the balanced error, 0 changes nothing.
    """

    def margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        return at_least_float32(logits) + self.adjustment

    labeled_margin = margin


class PosthocLogitAdjustment(_Adjustment):
    """The trained classifier returns ``f - tau * log(pi)``: its bias is raised for classes with few labels.

    Args:
        tau: strength of the adjustment; 1 follows the paper's theory, 0 changes nothing.
    """

    @torch.no_grad()
    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        adjustment = self.adjustment.to(head.weight)
        return rewritten(head, head.weight, -adjustment if head.bias is None else head.bias - adjustment)

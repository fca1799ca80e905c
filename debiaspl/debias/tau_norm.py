"""Tau-normalisation of the finished classifier (Kang et al., 2020)."""

import torch
from torch import Tensor, nn

from debiaspl.debias.correction import Correction, Traits, rewritten


class TauNorm(Correction):
    """Classes with many images grow long weights: each class's weights are divided by their norm to the power tau.

    ``w_i / |w_i|^tau``, after training. The paper drops the bias, and so does its code: here it becomes 0, unless
    ``keep_bias``. Then it is divided along with the weights of its class, so that tau 0 changes nothing. And all is
    multiplied by the mean norm to the tau: the same factor for every class changes no decision, but confidences keep
    their size, and where all norms are equal the weights stay.

    It is not in the paper's Table 1. Like Causal Norm there it needs no counts, and like it the rest is out of its
    reach: it comes once, after the pseudo-labels have been made.

    Args:
        tau: 0 changes no weight, 1 makes all classes equally long; the paper chooses it in between, by validation.
        keep_bias: normalise the bias with the weights of its class, instead of dropping it as the paper does.
    """

    traits = Traits(needs_no_class_distribution=True)

    def __init__(self, tau: float = 0.7, keep_bias: bool = False) -> None:
        super().__init__()
        if not 0 <= tau < float("inf"):
            raise ValueError(f"tau is {tau!r}, expected a number >= 0: 0 changes nothing, 1 makes all norms equal.")
        self.tau, self.keep_bias = float(tau), keep_bias

    @torch.no_grad()
    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        level = tau_normalised(head, self.tau)
        bias: Tensor | None = level.bias
        if bias is None or self.keep_bias:
            return level
        return rewritten(head, level.weight, torch.zeros_like(bias))  # a network is saved and loaded with a bias

    def extra_repr(self) -> str:
        return f"tau={self.tau}, keep_bias={self.keep_bias}"


def tau_normalised(head: nn.Linear, tau: float) -> nn.Linear:
    """Rows over their norm to the tau, times the mean norm to the tau."""
    norms = head.weight.norm(dim=1)
    # A class whose weights are all 0 stays as it is, instead of becoming NaN.
    mean = norms.mean()
    factor = torch.where(norms > 0, mean / norms, 1) ** tau
    bias: Tensor | None = head.bias
    return rewritten(head, head.weight * factor[:, None], None if bias is None else bias * factor)

"""Tau-normalisation of the trained classifier (Kang et al., 2020)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.debias import ranks
from debiaspl.debias.correction import Correction, rewritten, within

TAUS = 11
"""Values from 0 to 1 that are tried, if tau is chosen."""


class TauNorm(Correction):
    """Divides the weights of each class by their norm to the power tau: large classes tend to have long weights.

    ``w_i / |w_i|^tau``, after training. The paper and its code drop the bias, so here it becomes 0. Finally everything
    is multiplied by the mean norm to the power tau, which changes no decision, but keeps the size of confidences.

    Args:
        tau: 0 changes no weight, 1 gives all classes the same norm.
        choose_tau: choose tau from 0, 0.1, ..., 1 by held-out labels, as in the paper: the best mean accuracy over
            classes. Needs labels to hold out: ``validation=0.2``.
        keep_bias: normalise the bias with the weights of its class instead of dropping it; tau 0 then changes nothing.
    """

    def __init__(self, tau: float = 0.7, keep_bias: bool = False, choose_tau: bool = False) -> None:
        super().__init__()
        self.tau = float(within("tau", tau, "[0, inf)"))
        self.keep_bias, self.held_out = keep_bias, choose_tau

    @torch.no_grad()
    def choose(self, head: nn.Linear, features: Tensor, labels: Tensor) -> None:
        members = F.one_hot(labels, head.out_features).double()
        accuracy = []
        for number in range(TAUS):
            self.tau = number / (TAUS - 1)
            correct = self.classifier(head, features[0])(features).argmax(-1) == labels
            by_class = correct.double() @ members / members.sum(0)
            accuracy.append(by_class[members.any(0)].mean())
        # The first rank chooses, because others might round differently.
        self.tau = int(ranks.of_first(torch.stack(accuracy).argmax())) / (TAUS - 1)

    @torch.no_grad()
    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        level = tau_normalised(head, self.tau)
        bias: Tensor | None = level.bias
        if bias is None or self.keep_bias:
            return level
        return rewritten(head, level.weight, torch.zeros_like(bias))  # saved networks always have a bias


def tau_normalised(head: nn.Linear, tau: float) -> nn.Linear:
    norms = head.weight.norm(dim=1)
    # A class whose weights are all 0 keeps them, instead of becoming NaN.
    mean = norms.mean()
    factor = torch.where(norms > 0, mean / norms, 1) ** tau
    bias: Tensor | None = head.bias
    return rewritten(head, head.weight * factor[:, None], None if bias is None else bias * factor)

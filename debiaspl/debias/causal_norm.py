"""Causal Norm (Tang et al., 2020): removes the direction of the mean feature from the trained classifier."""

from copy import deepcopy

import torch
from torch import Tensor, nn

from debiaspl.debias.correction import Correction, rewritten, within
from debiaspl.debias.heads import NormalisedHead
from debiaspl.debias.tau_norm import tau_normalised


class CausalNorm(Correction):
    """Removes from each logit the part that comes from the direction of the mean feature, which all images share.

    With normalised weights w_i and ``d`` the direction of the mean feature, the paper's total direct effect of image x
    is ``w_i x - alpha * (x d) (w_i d)``. This is again a linear classifier: ``W (I - alpha d d^T)``.

    The bias is treated as the weight of one more feature that is always 1, so with alpha 1 the mean image has equal
    logits for all classes. Features are not normalised, which would change the confidence but not the class, and the
    weights are multiplied by their mean norm. With alpha 0 this is TauNorm with tau 1.

    The paper's own classifier is ``head=causal``: several normalised heads, each with its own d, a moving mean during
    training. This correction then only sets its alpha.

    Args:
        alpha: how much of the mean direction is removed; 1 removes it entirely. With head=causal the paper uses 3, and
            1 on CIFAR-10-LT; for a plain linear head accuracy fell beyond 1.5 (digits, a probe).
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = float(within("alpha", alpha, "[0, inf)"))

    @torch.no_grad()
    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        if isinstance(head, NormalisedHead):
            final = deepcopy(head)
            final.alpha.fill_(self.alpha)
            return final
        level = tau_normalised(head, tau=1)
        weight, mean = level.weight, mean_features.to(level.weight)
        if level.bias is not None:
            weight, mean = torch.cat([weight, level.bias[:, None]], 1), torch.cat([mean, mean.new_ones(1)])
        direction = nn.functional.normalize(mean, dim=0)
        direct = weight - self.alpha * torch.outer(weight @ direction, direction)
        return rewritten(head, direct[:, : head.in_features], None if head.bias is None else direct[:, -1])

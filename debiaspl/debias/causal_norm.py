"""Causal Norm (Tang et al., 2020), what it does to the finished classifier."""

import torch
from torch import Tensor, nn

from debiaspl.debias.correction import Correction, Traits, rewritten
from debiaspl.debias.tau_norm import tau_normalised


class CausalNorm(Correction):
    """Takes out of every logit what an image owes to lying, like all images, in the direction of the mean feature.

    With normalised weights w_i and ``d`` the direction of the mean feature, the paper's total direct effect of image x
    is ``w_i x - alpha * (x d) (w_i d)``. That is a linear classifier again: ``W (I - alpha d d^T)``.

    Where the paper leaves room: a bias is the weight of one more feature, which is always 1, so it needs no rule of its
    own, and with alpha 1 the mean image has equal logits for all classes. Features keep their length (the paper divides
    by it, which changes an image's confidence and not its class), and the weights are multiplied by the mean norm they
    had, so that confidences keep their size. With alpha 0 this is TauNorm with tau 1.

    The paper also trains its classifier normalised, in several heads; that is left out, this comes after any training.
    Its d is the average of features as the optimiser met them; here it is their mean under the finished network.

    Args:
        alpha: how much of the mean direction is removed; 1 removes it whole. The authors go up to 3 with the classifier
            they train; for a plain linear head that was too much (digits, a probe): beyond 1.5 it fell off.
    """

    traits = Traits(needs_no_class_distribution=True)

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        if not 0 <= alpha < float("inf"):
            raise ValueError(f"alpha is {alpha!r}, expected a number >= 0: 1 removes the mean direction whole.")
        self.alpha = float(alpha)

    @torch.no_grad()
    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        if mean_features.shape != (head.in_features,):
            raise ValueError(
                f"mean_features has shape {tuple(mean_features.shape)}, expected ({head.in_features},): the mean over "
                "training images of what this classifier is given."
            )
        level = tau_normalised(head, tau=1)
        weight, mean = level.weight, mean_features.to(level.weight)
        if level.bias is not None:
            weight, mean = torch.cat([weight, level.bias[:, None]], 1), torch.cat([mean, mean.new_ones(1)])
        direction = nn.functional.normalize(mean, dim=0)
        direct = weight - self.alpha * torch.outer(weight @ direction, direction)
        return rewritten(head, direct[:, : head.in_features], None if head.bias is None else direct[:, -1])

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"

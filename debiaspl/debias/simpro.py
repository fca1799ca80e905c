"""SimPro (Du, Han and Huang, 2024): estimates the class distribution of the unlabeled images during training."""

from collections.abc import Sequence

import torch
from torch import Tensor

from debiaspl.debias.correction import LABEL_SHARES, at_least_float32, checked_counts, within
from debiaspl.debias.running import RunningPrior

LEAST = 1e-12
"""Added to a share before its logarithm, as in the released code: a class that is never predicted can recover."""


class SimPro(RunningPrior):
    """Estimates how often each class occurs among unlabeled images, separately from the network.

    The logits f are those of balanced classes. ``prior`` (phi_u) is the estimated class distribution of the unlabeled
    images, ``joint`` (phi) that of all training images:

    * labels come from ``softmax(f + tau log prior)``, the Bayes classifier of the unlabeled images (E-step);
    * both losses use ``z + tau log joint``, so that the trained classifier needs no correction (M-step for the
      network);
    * the labels that reach ``count_threshold`` are counted: prior moves to their mean, joint to their sum with the
      labeled images (M-step for the distributions, in closed form).

    The released code has tau 2 on CIFAR-10 and STL-10, and 1 on CIFAR-100, where the threshold of labels is 0.2. It
    updates both every 500 steps with a momentum of 0.9, which has the mean age of 0.9998 per step; the default is for
    shorter runs. It has soft targets, and weights the labeled loss by the share of labeled images.

    Args:
        class_counts: number of labels per class; joint starts with their shares.
        tau: strength of the adjustment of losses and labels; 1 is Bayes' rule, the released code uses 1 or 2.
        momentum: momentum of prior and joint, in [0, 1).
        count_threshold: labels with a lower confidence are not counted.
        unlabeled_ratio: unlabeled images per labeled image in a batch (unlabeled_batch / labeled_batch).
    """

    takes_out = LABEL_SHARES
    exact = ("prior", "joint")
    joint: Tensor
    shares: Tensor

    def __init__(
        self,
        class_counts: Sequence[int],
        tau: float = 1.0,
        momentum: float = 0.999,
        count_threshold: float = 0.95,
        unlabeled_ratio: float = 1.0,
    ) -> None:
        super().__init__(len(class_counts), momentum)
        self.tau = float(within("tau", tau, "[0, inf)"))
        self.count_threshold = within("count_threshold", count_threshold, "[0, 1]")
        self.unlabeled_ratio = float(within("unlabeled_ratio", unlabeled_ratio, "[0, inf)"))
        counts = checked_counts(class_counts)
        self.register_buffer("shares", counts / counts.sum(), persistent=False)
        self.register_buffer("joint", self.shares.clone())

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        self.check(weak_logits)
        return (at_least_float32(weak_logits.detach()) + self.tau * (self.prior + LEAST).log()).softmax(-1)

    def margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        self.check(logits)
        return at_least_float32(logits) + self.tau * (self.joint + LEAST).log()

    labeled_margin = margin

    def counted(self, logits: Tensor) -> Tensor:
        labels = self.probabilities(logits)
        return labels * (labels.amax(-1, keepdim=True) >= self.count_threshold)

    def _follow(self, batch_mean: Tensor, usable: Tensor) -> None:
        total = batch_mean.sum()
        kept = usable & (total > 0)
        together = (self.shares + self.unlabeled_ratio * batch_mean) / (1 + self.unlabeled_ratio * total)
        for own, seen in ((self.prior, batch_mean / total), (self.joint, together)):
            own.copy_(torch.where(kept, own.lerp(seen, 1 - self.momentum), own))

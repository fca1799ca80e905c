"""LDAM (Cao et al., 2019): label-distribution-aware margins, and LDAM-DRW, with deferred re-weighting."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.debias.correction import Correction, at_least_float32, checked_counts, within


class LDAM(Correction):
    """LDAM's margin: lowers the logit of the true class in the loss, more so for classes with few labels.

    Both losses use ``z - s * Delta_y``, with the margin only at the label y: ``Delta_j = C / n_j^(1/4)`` for a class of
    n_j labels, where C makes the largest margin equal to ``max_margin``.

    Args:
        max_margin: margin of the smallest class; 0 is no margin.
        scale: s, the scale of the logits; 30 with head=cosine.
    """

    needs_hard_labels = True
    margins: Tensor

    def __init__(self, class_counts: Sequence[int], max_margin: float = 0.5, scale: float = 1.0) -> None:
        super().__init__()
        self.max_margin = float(within("max_margin", max_margin, "[0, inf)"))
        self.scale = float(within("scale", scale, "(0, inf)"))
        raw = checked_counts(class_counts) ** -0.25
        self.register_buffer("margins", self.max_margin * raw / raw.max(), persistent=False)

    def margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        if labels is None:
            raise ValueError("LDAM got logits without labels, expected one class per image, as in fixmatch.")
        own = F.one_hot(labels, len(self.margins))
        return at_least_float32(logits) - own * (self.scale * self.margins)

    labeled_margin = margin


class LDAMDRW(LDAM):
    """LDAM, then deferred re-weighting: late in training, small classes count more in both losses.

    The weight of a class of n labels is proportional to ``(1 - beta) / (1 - beta^n)``; the mean over all labels is 1.
    For ``head=cosine``; with a linear head set scale=1.

    Args:
        begin: share of the training from which on classes are weighted.
        beta: how much images of a class overlap; with 0 all weigh the same, near 1 the weight is 1 / n.
    """

    weights: Tensor
    balanced: Tensor

    def __init__(
        self,
        class_counts: Sequence[int],
        max_margin: float = 0.5,
        scale: float = 30.0,
        begin: float = 0.8,
        beta: float = 0.9999,
    ) -> None:
        super().__init__(class_counts, max_margin, scale)
        within("beta", beta, "[0, 1)")
        self.begin = within("begin", begin, "[0, 1]")
        counts = checked_counts(class_counts).double()
        raw = (1 - beta) / (1 - beta**counts)
        balanced = raw * counts.sum() / (raw * counts).sum()
        self.register_buffer("balanced", balanced.float(), persistent=False)
        self.register_buffer("weights", torch.ones_like(self.balanced), persistent=False)

    def look(self, network: nn.Module, like: Tensor, progress: Tensor) -> None:
        self.weights.copy_(torch.where(progress >= self.begin, self.balanced, 1))

    def class_weights(self) -> Tensor:
        return self.weights

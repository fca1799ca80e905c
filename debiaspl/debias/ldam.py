"""The margin of LDAM (Cao et al., 2019): label-distribution-aware margins, without the rest of that method."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from debiaspl.debias.correction import Correction, Traits, at_least_float32, checked_counts


class LDAM(Correction):
    """LDAM's margin: lowers the logit of the true class in the loss, more so for classes with few labels.

    The loss uses ``s * (z - Delta_y)``, with the margin only at the label y: ``Delta_j = C / n_j^(1/4)`` for a class
    of n_j labels, where C makes the largest margin equal to ``max_margin``. It applies to the labeled and the unlabeled
    loss.

    The paper normalises features and weights, so that a logit is a cosine, and multiplies by s = 30, because a softmax
    of cosines is never confident. The heads here are linear and learn their own scale, so s is 1 and the margin is in
    units of the logit. With s = 30 such a head starts saturated, with gradients 30 times as large: on digits it learns
    nothing (10 % with four seeds, a probe).

    The paper's deferred re-weighting (DRW), a change of the loss weights late in training, is not a margin and is not
    included. So this is not LDAM-DRW and should not be compared with its numbers.

    Args:
        class_counts: number of labels per class, n_j.
        max_margin: margin of the smallest class; 0 is no margin.
        scale: s, the factor on the logits; 30 for a head whose logits are cosines.
    """

    traits = Traits(helps_training=True)
    needs_hard_labels = True
    margins: Tensor

    def __init__(self, class_counts: Sequence[int], max_margin: float = 0.5, scale: float = 1.0) -> None:
        super().__init__()
        if not 0 <= max_margin < float("inf"):
            raise ValueError(f"max_margin is {max_margin!r}, expected a number >= 0; the paper uses 0.5.")
        if not 0 < scale < float("inf"):
            raise ValueError(f"scale is {scale!r}, expected a number > 0: 1 for a linear head, 30 for cosines.")
        self.max_margin, self.scale = float(max_margin), float(scale)
        raw = checked_counts(class_counts) ** -0.25
        self.register_buffer("margins", self.max_margin * raw / raw.max(), persistent=False)

    def margin(self, strong_logits: Tensor, labels: Tensor | None = None) -> Tensor:
        if labels is None:
            raise ValueError(
                "LDAM got logits without labels, expected one class per image: its margin is that of the label. Use it "
                "with an algorithm that has hard labels, such as fixmatch."
            )
        own = F.one_hot(labels, len(self.margins))
        return self.scale * (at_least_float32(strong_logits) - own * self.margins)

    def labeled_margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        return self.margin(logits, labels)

    def extra_repr(self) -> str:
        return f"max_margin={self.max_margin}, scale={self.scale}"

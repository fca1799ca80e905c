"""Distribution alignment, from ReMixMatch (Berthelot et al., 2020)."""

from collections.abc import Sequence

from torch import Tensor

from debiaspl.debias.correction import at_least_float32
from debiaspl.debias.running import LABELS, RunningPrior, safe_log, shares_of


class DistributionAlignment(RunningPrior):
    """Adjusts pseudo-labels so that their average class distribution matches a target distribution.

    ``alignment(weak_logits)`` is ``q * target / prior``, normalised, with ``q = softmax(f)``. In the paper's letters,
    p(y) is the target, and p-tilde(y), the running mean of the model's raw predictions, is ``prior``. With a uniform
    target the labels are those of a Debiaser of strength 1 without its margin.

    The paper's p-tilde is the mean over the last 128 batches. Here it is a moving average, from 1 / C: a momentum of
    127 / 129, about 0.985, has the same mean age and the same variance as that window.

    Args:
        class_counts: number of labels per class; the default target.
        target: ``labels``, ``uniform``, or one share per class, such as ``0.5,0.3,0.2``; shares are normalised.
        momentum: momentum of the prior's moving average, in [0, 1).
    """

    corrects_pseudo_labels_alone = True
    target: Tensor

    def __init__(
        self, class_counts: Sequence[int], target: str | Sequence[float] = LABELS, momentum: float = 0.985
    ) -> None:
        super().__init__(len(class_counts), momentum)
        self.register_buffer("target", shares_of(target, class_counts), persistent=False)

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        self.check(weak_logits)
        return (at_least_float32(weak_logits.detach()) + (safe_log(self.target) - safe_log(self.prior))).softmax(-1)

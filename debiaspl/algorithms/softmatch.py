"""SoftMatch (Chen et al., 2023): pseudo-labels weighted by a truncated Gaussian of their confidence."""

from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models, WeakToStrong, predict
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import within


class SoftMatch(WeakToStrong):
    """FixMatch with a weight instead of the threshold.

    A label at or above the mean confidence has weight 1, one below it ``exp(-(confidence - mu)^2 / (2 sigma^2))``.
    mu and sigma^2 are moving averages of the mean and variance of the confidence over the weak views, from 1 / C and 1;
    they are updated with a batch before it is weighted.

    The paper's uniform alignment is the correction ``alignment`` with a uniform target and ``corrected_labels=false``.

    Args:
        decay: decay of the moving averages mu and sigma^2 (m).
        sharpness: factor by which the Gaussian is narrower; 1 is the printed formula, 2 the released code, and with
            0 every label has weight 1.
        unlabeled_weight: weight of the unlabeled loss, and so the largest weight of a label (lambda_max).
        corrected_labels: take labels from corrected predictions; with false the correction changes only the weights.
    """

    own_correction = "alignment"
    own_settings = MappingProxyType({"target": "uniform", "corrected_labels": False})
    mean: Tensor
    variance: Tensor

    def __init__(
        self,
        num_classes: int,
        correction: Correction | None = None,
        decay: float = 0.999,
        sharpness: float = 2.0,
        corrected_labels: bool = True,
        **others: Any,
    ) -> None:
        super().__init__(correction, **others)
        self.decay = within("decay", decay, "[0, 1)")
        self.sharpness = within("sharpness", sharpness, "[0, inf)")
        self.corrected_labels = corrected_labels
        self.register_buffer("mean", torch.full((), 1 / num_classes))
        self.register_buffer("variance", torch.ones(()))

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits, (logits_weak,), (logits_strong,) = predict(models, batch, self.joint)

        confidence, label = self.correction(logits_weak).to(self.mean.dtype).max(-1)
        if not self.corrected_labels:
            label = logits_weak.argmax(-1)
        everyone = ranks.gathered(confidence)
        self.mean.lerp_(everyone.mean(), 1 - self.decay)
        # B / (B - 1) times the variance in the batch; a single image has none.
        self.variance.lerp_(everyone.var(correction=min(1, len(everyone) - 1)), 1 - self.decay)
        weight = self.weights(confidence)
        self.report_labels(logits_weak, confidence, label, confidence >= self.mean, weight=weight.mean())
        return self.both_losses(logits, batch.labels, logits_strong, label, weight)

    def weights(self, confidence: Tensor) -> Tensor:
        below = (confidence - self.mean).clamp_max(0) * self.sharpness
        variance = self.variance.clamp_min(torch.finfo(self.variance.dtype).tiny)
        return (-below.square() / (2 * variance)).exp()

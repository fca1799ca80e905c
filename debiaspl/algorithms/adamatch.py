"""AdaMatch (Berthelot et al., 2022): FixMatch with mixed labeled logits and a relative threshold."""

import math
from dataclasses import replace
from types import MappingProxyType

import torch
from torch import Tensor
from torch.func import functional_call

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views, predict
from debiaspl.algorithms.mixing import ramp
from debiaspl.debias import Correction, ranks
from debiaspl.debias.alignment import DistributionAlignment
from debiaspl.debias.correction import at_least_float32, within


class AdaMatch(Algorithm):
    """FixMatch with three changes, for labeled and unlabeled images from different domains:

    * Labeled images are passed twice, together with the unlabeled ones (Z') and alone (Z''), so that the result does
      not depend on batch norm. The loss uses ``lambda Z' + (1 - lambda) Z''``, lambda from [0, 1] for every logit.
    * The threshold is relative: ``c_tau`` is tau times the mean confidence on the labeled images.
    * The unlabeled loss has the weight ``mu(t) = 1/2 - cos(min(pi, 2 pi t)) / 2`` at a share t of the training.

    The labeled loss is the mean over a weak and a strong view of each labeled image. The paper aligns the predictions
    on unlabeled images with those on labeled ones: that is the correction ``alignment`` with
    ``align_to_predictions=true``. Its target is then a moving average, from 1 / C.

    Args:
        threshold: labels are used from this share of the confidence on labeled images on (tau).
        unlabeled_weight: final weight of the unlabeled loss.
        ramp_up: share of the training in which that weight grows from 0; 0 is full weight from the first step.
        strong_labeled: learn from a strong view of each labeled image too, as the paper does.
        align_to_predictions: the target of correction=alignment is the predictions on labeled images.
        target_decay: decay of the moving average of that target.
    """

    views = Views(weak=1, strong=1)
    own_correction = "alignment"
    own_settings = MappingProxyType({"align_to_predictions": True})
    labeled_marginal: Tensor

    def __init__(
        self,
        correction: Correction | None = None,
        threshold: float = 0.9,
        unlabeled_weight: float = 1.0,
        ramp_up: float = 0.5,
        strong_labeled: bool = True,
        align_to_predictions: bool = False,
        target_decay: float = 0.999,
    ) -> None:
        super().__init__(correction)
        if align_to_predictions and not isinstance(self.correction, DistributionAlignment):
            raise ValueError("align_to_predictions needs alignment alone. Use correction=alignment.")
        self.labeled_strong = int(strong_labeled)
        self.target_decay = within("target_decay", target_decay, "[0, 1)")
        self.align_to_predictions = align_to_predictions
        if isinstance(self.correction, DistributionAlignment) and align_to_predictions:
            target = self.correction.target
            self.register_buffer("labeled_marginal", torch.full_like(target, 1 / len(target)))
        self.threshold = within("threshold", threshold, "[0, 1]")
        self.ramp_up = within("ramp_up", ramp_up, "[0, 1]")
        self.unlabeled_weight = unlabeled_weight

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        labeled = (batch.labeled, *batch.labeled_strong)
        whole = replace(batch, labeled=torch.cat(labeled))
        together, (logits_weak,), (logits_strong,) = predict(models, whole, joint=True)
        # The second pass uses copies of the running statistics, so that its updates to them are dropped.
        copies = {name: buffer.clone() for name, buffer in models.student.named_buffers()}
        alone = functional_call(models.student, copies, (whole.labeled,))
        shape = (ranks.count() * len(batch.labels), together.shape[1])
        # For each view separately, so that each rank draws its part of the whole batch's numbers.
        drawn = [torch.rand(shape, generator=batch.generator, device=together.device) for _ in labeled]
        share = torch.cat([ranks.own_part(view) for view in drawn])
        exact = at_least_float32(together)
        views = torch.split(at_least_float32(alone).lerp(exact, share.to(exact.dtype)), len(batch.labels))

        known = views[0].detach().softmax(-1)
        if self.align_to_predictions:
            self._set_target(known.mean(0))
        confidence, label = self.correction(logits_weak).max(-1)
        threshold = self.threshold * ranks.mean(known.amax(-1).mean())
        keep = confidence >= threshold
        unlabeled = self.unlabeled_loss(logits_strong, label, keep)
        grown = 0.5 - 0.5 * torch.cos(math.pi * ramp(batch.progress, self.ramp_up))

        self.report_labels(logits_weak, confidence, label, keep, threshold=threshold)
        return {
            "labeled": torch.stack([self.labeled_loss(view, batch.labels) for view in views]).mean(),
            "unlabeled": self.unlabeled_weight * grown * unlabeled,
        }

    def _set_target(self, mean: Tensor) -> None:
        """The target is not in the correction's state, but in this algorithm's."""
        assert isinstance(self.correction, DistributionAlignment)
        self.labeled_marginal.lerp_(ranks.mean(mean).to(self.labeled_marginal.dtype), 1 - self.target_decay)
        self.correction.target.copy_(self.labeled_marginal)

"""AdaMatch (Berthelot et al., 2022): FixMatch whose labeled logits and threshold follow the model."""

import math

import torch
from torch import Tensor
from torch.func import functional_call

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views, check_threshold
from debiaspl.algorithms.consistency import labeled_loss, report_labels, unlabeled_loss
from debiaspl.algorithms.mixing import check_ramp, ramp
from debiaspl.algorithms.predict import predict
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import at_least_float32


class AdaMatch(Algorithm):
    """Three changes to FixMatch, for labeled and unlabeled images that do not look alike:

    * Labeled images pass twice, together with the unlabeled ones (Z') and alone (Z''), and learn from a random point
      between the two, ``lambda Z' + (1 - lambda) Z''`` with a lambda from [0, 1] for every logit: no batch norm may
      tell them apart. Its statistics are those of the first pass alone.
    * The threshold is relative: ``c_tau`` is tau times the mean confidence on the labeled images.
    * The unlabeled loss has the weight ``mu(t) = 1/2 - cos(min(pi, 2 pi t)) / 2`` at a share t of the training.

    The paper aligns the unlabeled predictions with the labeled ones; here that is a correction of its own. It also
    learns strong views of the labeled images, which a batch does not have here. Ranks share one threshold, that of all
    their labeled images.

    Args:
        correction: what is done to the predictions before they become labels; nothing, if not given.
        threshold: labels are used from this share of the confidence on labeled images on (tau).
        unlabeled_weight: weight of the unlabeled loss once it has grown.
        ramp_up: share of the training in which that weight grows from 0; 0 is full weight from the first step on.
    """

    views = Views(weak=1, strong=1)
    own_correction = "alignment"

    def __init__(
        self,
        correction: Correction | None = None,
        threshold: float = 0.9,
        unlabeled_weight: float = 1.0,
        ramp_up: float = 0.5,
    ) -> None:
        super().__init__(correction)
        self.threshold, self.ramp_up = check_threshold(threshold), check_ramp(ramp_up)
        self.unlabeled_weight = unlabeled_weight

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        together, (logits_weak,), (logits_strong,) = predict(models, batch, joint=True)
        # The pass alone is given copies of the statistics of batch norm, so that what it adds to them is dropped.
        copies = {name: buffer.clone() for name, buffer in models.student.named_buffers()}
        alone = functional_call(models.student, copies, (batch.labeled,))
        shape = (ranks.count() * together.shape[0], together.shape[1])
        share = ranks.own_part(torch.rand(shape, generator=batch.generator, device=together.device))
        exact = at_least_float32(together)
        logits = at_least_float32(alone).lerp(exact, share.to(exact.dtype))

        confidence, label = self.correction(logits_weak).max(-1)
        threshold = self.threshold * ranks.mean(logits.detach().softmax(-1).amax(-1).mean())
        keep = confidence >= threshold
        unlabeled = unlabeled_loss(self.correction, logits_strong, label, keep)
        grown = 0.5 - 0.5 * torch.cos(math.pi * ramp(batch.progress, self.ramp_up))

        report_labels(self, logits_weak, confidence, label, keep, threshold=threshold)
        return {
            "labeled": labeled_loss(self.correction, logits, batch.labels),
            "unlabeled": self.unlabeled_weight * grown * unlabeled,
        }

"""MixMatch (Berthelot et al., 2019): labels guessed from several views, and MixUp of all images."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views
from debiaspl.algorithms.mixing import mixup, one_hot, ramp, sharpen
from debiaspl.debias import Correction
from debiaspl.debias.correction import at_least_float32, within


class MixMatch(Algorithm):
    """The label of an unlabeled image is its mean prediction over several weak views, sharpened. Labeled and unlabeled
    views and their labels are then mixed (MixUp). The loss is the cross-entropy for mostly labeled mixtures, and the
    squared error of the probabilities for the others.

    All mixed images are one batch, for which the paper "interleaves" several. A correction corrects each view's
    probabilities before their mean is taken. It learns from the mean of the logits, and its margin is added to the
    logits of the mixed images in the squared error.

    Args:
        views: weak views of each unlabeled image (K).
        temperature: temperature of the guessed labels, p ** (1 / T); 1 leaves them as they are.
        alpha: parameter of Beta(alpha, alpha), from which the mixing shares are drawn; 0 mixes nothing.
        unlabeled_weight: weight of the unlabeled loss (lambda_U); the paper: 75 for CIFAR-10, 50 to 250 elsewhere.
        ramp_up: share of the training over which that weight grows from 0; the paper: 16,000 of 2^20 steps.
    """

    hard_labels = False

    def __init__(
        self,
        correction: Correction | None = None,
        views: int = 2,
        temperature: float = 0.5,
        alpha: float = 0.75,
        unlabeled_weight: float = 75.0,
        ramp_up: float = 1 / 64,
    ) -> None:
        super().__init__(correction)
        self.views = Views(weak=within("views", views, "[1, inf)"))
        self.temperature = within("temperature", temperature, "(0, inf)")
        self.alpha = within("alpha", alpha, "[0, inf)")
        self.unlabeled_weight, self.ramp_up = unlabeled_weight, within("ramp_up", ramp_up, "[0, 1]")

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        guess = self._guess(models, batch)
        known = one_hot(batch.labels, guess)
        images = torch.cat([batch.labeled, *batch.weak])
        targets = torch.cat([known, *[guess] * len(batch.weak)])

        images, targets = mixup(images, targets, self.alpha, batch.generator)
        logits, logits_unlabeled = models.student(images).tensor_split([len(known)])
        target, target_unlabeled = targets.tensor_split([len(known)])

        predicted = self.correction.margin(logits_unlabeled).softmax(-1)
        weight = self.unlabeled_weight * ramp(batch.progress, self.ramp_up)
        return {
            "labeled": F.cross_entropy(self.correction.labeled_margin(logits), target),
            "unlabeled": weight * F.mse_loss(predicted, target_unlabeled),
        }

    @torch.no_grad()
    def _guess(self, models: Models, batch: Batch) -> Tensor:
        """A soft label for each unlabeled image, (U, C), from all its views."""
        logits_weak = at_least_float32(models.teacher(torch.cat(batch.weak)))
        by_view = (len(batch.weak), -1, logits_weak.shape[-1])
        probabilities = self.correction.probabilities(logits_weak).reshape(by_view).mean(0)
        mean_weak = logits_weak.reshape(by_view).mean(0)
        if self.training:
            self.correction.learn(mean_weak)

        confidence, label = probabilities.max(-1)
        self.report_labels(mean_weak, confidence, label)
        return sharpen(probabilities, self.temperature)

"""ReMixMatch (Berthelot et al., 2020): MixMatch with augmentation anchoring and a rotation loss."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.algorithms.algorithm import Batch, Models, Views
from debiaspl.algorithms.mixing import mixup, one_hot, ramp, sharpen
from debiaspl.algorithms.mixmatch import MixMatch
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import at_least_float32


class ReMixMatch(MixMatch):
    """MixMatch with three changes. The sharpened label comes from the weak view only, and is the target of all views
    (augmentation anchoring). In addition to the mixed images, the first strong view is learned unmixed. And a separate
    head predicts by how many quarter turns that view was rotated.

    The paper aligns the labels with the class distribution before sharpening: that is the correction ``alignment``. Its
    strong views are of a learned CTAugment, also for the labeled images.

    Args:
        views: strong views of each unlabeled image (K); the paper: 8.
        unlabeled_weight: weight of the mixed unlabeled images (lambda_U).
        unmixed_weight: weight of the first strong view, unmixed (lambda_U1-hat).
        rotation_weight: weight of the rotation loss (lambda_r); with 0 nothing is rotated.
        ramp_up: share of the training over which unlabeled_weight and unmixed_weight grow from 0.
    """

    own_correction = "alignment"

    def __init__(
        self,
        num_features: int,
        correction: Correction | None = None,
        views: int = 2,
        unlabeled_weight: float = 1.5,
        unmixed_weight: float = 0.5,
        rotation_weight: float = 0.5,
        **others: Any,
    ) -> None:
        super().__init__(correction, views, unlabeled_weight=unlabeled_weight, **others)
        self.views = Views(weak=1, strong=views)
        self.unmixed_weight, self.rotation_weight = unmixed_weight, rotation_weight
        self.rotation = nn.Linear(num_features, 4)
        if rotation_weight:
            self.needs_pictures = "it rotates images by quarter turns. It can with rotation_weight=0."

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        guess = self._guess(models, batch)
        known = one_hot(batch.labels, guess)
        views = (*batch.strong, *batch.weak)
        targets = torch.cat([known, *[guess] * len(views)])
        mixed, targets = mixup(torch.cat([batch.labeled, *views]), targets, self.alpha, batch.generator)
        target, target_mixed = targets.tensor_split([len(known)])

        images = [mixed, batch.strong[0]]
        if self.rotation_weight:
            turned, quarters = turn(batch.strong[0], batch.generator)
            images.append(turned)
        features = models.student.embed(torch.cat(images))
        ends = [len(known), len(mixed), len(mixed) + len(guess)]
        logits, logits_mixed, logits_first, _ = models.student.head(features).tensor_split(ends)

        growth = ramp(batch.progress, self.ramp_up)
        unlabeled = F.cross_entropy(self.correction.margin(logits_mixed), target_mixed)
        unmixed = F.cross_entropy(self.correction.margin(logits_first), guess)
        losses = {
            "labeled": F.cross_entropy(self.correction.labeled_margin(logits), target),
            "unlabeled": self.unlabeled_weight * growth * unlabeled,
            "unmixed": self.unmixed_weight * growth * unmixed,
        }
        if self.rotation_weight:
            logits_rotation = at_least_float32(self.rotation(features[ends[-1] :]))
            losses["rotation"] = self.rotation_weight * F.cross_entropy(logits_rotation, quarters)
        return losses

    @torch.no_grad()
    def _guess(self, models: Models, batch: Batch) -> Tensor:
        """From the weak view."""
        logits_weak = models.teacher(batch.weak[0])
        probabilities = self.correction(logits_weak)
        confidence, label = probabilities.max(-1)
        self.report_labels(logits_weak, confidence, label)
        return sharpen(probabilities, self.temperature)


def turn(images: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Each image rotated by 0 to 3 quarter turns to the left, and their numbers."""
    height, width = images.shape[-2:]
    if height != width:
        raise ValueError(f"the images are {height} x {width}, expected squares. Set image_size, or rotation_weight=0.")
    drawn = torch.randint(4, (ranks.count() * len(images),), device=images.device, generator=generator)
    quarters = ranks.own_part(drawn)
    # Compute every rotation of every image and pick one: the shapes do not depend on the random numbers.
    turns = torch.stack([images.rot90(count, (2, 3)) for count in range(4)])
    return turns[quarters, torch.arange(len(images), device=images.device)], quarters

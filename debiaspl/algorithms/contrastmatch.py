"""FixMatch with a contrastive loss, which trains the features before there are confident labels."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, SelfSupervised, Views
from debiaspl.algorithms.contrast import Contrast
from debiaspl.debias import Correction
from debiaspl.debias.correction import at_least_float32, within


class ContrastMatch(Algorithm):
    """FixMatch and a contrastive loss: each strong view must be matched with its own weak view, among those of the
    batch, of all ranks and of earlier batches.

    With few labels, FixMatch starts with few confident ones, many of them wrong. Meanwhile the contrastive loss trains
    the features. Its weight decreases linearly to 0: it treats images of one class as different.

    Args:
        contrast_weight: initial weight of the contrastive loss; 0, with labels_from=0: FixMatch with joint=false.
        contrast_until: share of the training after which there is no contrastive loss.
        labels_from: share of the training after which pseudo-labels are learned. Until then the correction learns but
            has no effect on the network.
        width: width of the space in which views are compared, by cosine.
        temperature: temperature of the similarities; lower values focus on the nearest images.
        memory: number of weak views of earlier batches used as negatives.
        relations: share of the target that goes to other images, by the teacher's similarity of their weak views
            (Denize et al., 2023); with 0 all others are equally wrong.
        relation_temperature: temperature of the teacher's similarities.
        key_decay: decay of the averaged projector for weak views; 0 uses the projector of the strong views. It is
            updated with each part of an accumulated batch.
    """

    views = Views(weak=1, strong=1)
    heads = Contrast.heads
    needs_pictures = SelfSupervised.needs_pictures

    def __init__(
        self,
        correction: Correction | None = None,
        num_features: int = 128,
        contrast_weight: float = 1.0,
        contrast_until: float = 1.0,
        labels_from: float = 0.5,
        width: int = 128,
        temperature: float = 0.2,
        memory: int = 0,
        relations: float = 0.0,
        relation_temperature: float = 0.05,
        key_decay: float = 0.0,
        threshold: float = 0.95,
        unlabeled_weight: float = 1.0,
    ) -> None:
        super().__init__(correction)
        self.threshold, self.unlabeled_weight = within("threshold", threshold, "[0, 1]"), unlabeled_weight
        self.contrast_weight, self.labels_from = contrast_weight, within("labels_from", labels_from, "[0, 1)")
        self.contrast_until = within("contrast_until", contrast_until, "(0, 1]")
        self.contrast = Contrast(num_features, width, temperature, memory, relations, relation_temperature, key_decay)
        if relations:
            self.advice = "Set relations=0, which pulls similar images together. Else try a smaller learning_rate."

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        with torch.no_grad():
            features_weak = models.teacher.embed(batch.weak[0])
            logits_weak = models.teacher.head(features_weak)
        features = models.student.embed(torch.cat((batch.labeled, batch.strong[0])))
        sizes = [len(batch.labeled), len(batch.strong[0])]
        logits, logits_strong = torch.split(models.student.head(features), sizes)

        confidence, label = self.correction(logits_weak).max(-1)
        keep = confidence >= self.threshold
        self.report_labels(logits_weak, confidence, label, keep)
        unlabeled = self.unlabeled_loss(logits_strong, label, keep)
        weight = self.contrast_weight * (1 - batch.progress / self.contrast_until).clamp_min(0)
        learned, plain = batch.progress >= self.labels_from, F.cross_entropy(at_least_float32(logits), batch.labels)
        return {
            "labeled": torch.where(learned, self.labeled_loss(logits, batch.labels), plain),
            "unlabeled": learned * self.unlabeled_weight * unlabeled,
            "contrast": weight * self.contrast(features[sizes[0] :], features_weak),
        }

"""PAWS (Assran et al., 2021): two views must agree on the class, predicted by similarity to the labeled images."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, SelfSupervised, Views
from debiaspl.algorithms.contrast import TEMPERATURES, perceptron, unit
from debiaspl.algorithms.mixing import sharpen
from debiaspl.augment.cropcolor import AREA, checked_area, small_crops
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import within


class PAWS(Algorithm):
    """The labeled batch, of all ranks, is the support. A view z is classified by its soft nearest neighbours in it:
    ``p = softmax(z z_k / t) y_k``, with cosines of projected features and smoothed labels y. Each of two strong views
    learns the sharpened prediction of the other (cross-entropy), and the mean of the sharpened predictions should have
    a high entropy (me-max), so that no class dominates.

    * Without ``balanced_support`` each support image has the weight 1 / (images of its class in the batch). A class
      that is missing in the batch cannot be predicted: use a labeled_batch of several times the number of classes.
    * Me-max assumes that the unlabeled classes are about equally large. If they are not, lower ``entropy_weight``.
    * The classifier learns the labels on top, without changing the features.
    * A correction takes log p as logits. Its margin is in the loss, not in me-max.
    * Multi-crop: small crops of further views learn the mean of both targets.

    Args:
        temperature: temperature of the cosines (t, the paper's tau).
        sharpening: temperature of the targets, p ** (1 / T); 1 leaves them as they are.
        label_smoothing: share of a support label that is spread over all classes.
        entropy_weight: weight of me-max; the paper: 1.
        width: width of the space in which views and support are compared.
        small_views: additional views of half the size; 0: no multi-crop.
        small_area: smallest and largest share of a view in a small crop; on CIFAR-10 the paper has 0.3 and 0.75.
        support_views: views of each support image; all but the first are strong.
        balanced_support: draw the same number of labeled images of every class, as the paper does.
    """

    views = Views(strong=8)
    hard_labels = False
    needs_pictures = SelfSupervised.needs_pictures

    def __init__(
        self,
        num_classes: int,
        num_features: int,
        correction: Correction | None = None,
        temperature: float = 0.1,
        sharpening: float = 0.25,
        label_smoothing: float = 0.1,
        entropy_weight: float = 1.0,
        width: int = 128,
        small_views: int = 6,
        small_area: tuple[float, ...] = AREA,
        support_views: int = 2,
        balanced_support: bool = True,
    ) -> None:
        super().__init__(correction)
        self.temperature = within("temperature", temperature, TEMPERATURES)
        self.sharpening = within("sharpening", sharpening, TEMPERATURES)
        self.label_smoothing = within("label_smoothing", label_smoothing, "[0, 1)")
        self.num_classes = num_classes
        self.entropy_weight = within("entropy_weight", entropy_weight, "[0, inf)")
        self.small_area = checked_area(small_area)
        self.views = Views(strong=2 + within("small_views", small_views, "[0, inf)"))
        self.labeled_strong = within("support_views", support_views, "[1, inf)") - 1
        self.balanced_labels = balanced_support
        self.projector = perceptron((*[num_features] * 3, within("width", width, "[1, inf)")), norm=True)

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        large, small = batch.strong[:2], batch.strong[2:]
        supports = [batch.labeled, *batch.labeled_strong]
        features = models.student.embed(torch.cat([*supports, *large]))
        support, views = unit(self.projector(features)).tensor_split([len(supports) * len(batch.labels)])
        labels = batch.labels.repeat(len(supports))
        logits = self.logits(views, support, labels)

        probabilities = self.correction(logits)
        target = sharpen(torch.cat(probabilities.chunk(2)[::-1]), self.sharpening)
        confidence, label = torch.stack(probabilities.chunk(2)).mean(0).max(-1)  # of each image's two views
        self.report_labels(logits, confidence, label)
        if small:
            crops = models.student.embed(small_crops(small, self.small_area, batch.generator))
            logits = torch.cat((logits, self.logits(unit(self.projector(crops)), support, labels)))
            mean = torch.stack(target.chunk(2)).mean(0)
            target = torch.cat((target, mean.repeat(len(small), 1)))
        classifier = models.student.head(features[: len(batch.labels)].detach())
        losses = {
            "labeled": self.labeled_loss(classifier, batch.labels),
            "unlabeled": F.cross_entropy(self.correction.margin(logits), target),
        }
        if self.entropy_weight:
            losses["entropy"] = -self.entropy_weight * self.entropy(logits)
        return losses

    def logits(self, views: Tensor, support: Tensor, labels: Tensor) -> Tensor:
        """log p of each view, (N, C), from the support of all ranks; both are rows of length 1."""
        support, labels = ranks.gathered_with_gradient(support), ranks.gathered(labels)
        known = F.one_hot(labels, self.num_classes).to(views.dtype)
        weight = 1 / known.sum(0)[labels]
        smoothed = known * (1 - self.label_smoothing) + self.label_smoothing / self.num_classes
        with torch.autocast(views.device.type, enabled=False):  # a low temperature amplifies rounding errors of bf16
            nearness = (views @ support.T / self.temperature + weight.log()).softmax(-1)
            # Without smoothing, a class can be so far away that its probability underflows to 0.
            return (nearness @ smoothed).clamp_min(torch.finfo(views.dtype).tiny).log()

    def entropy(self, logits: Tensor) -> Tensor:
        """Entropy of the mean sharpened prediction for all views of all ranks."""
        sharpened = (logits / self.sharpening).softmax(-1)
        mean = ranks.summed_with_gradient(sharpened.mean(0)) / ranks.count()
        return torch.special.entr(mean.clamp_min(torch.finfo(mean.dtype).tiny)).sum()

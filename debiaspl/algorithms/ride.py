"""RIDE (Wang et al., 2021): diverse experts, each with its own loss, without the routing between them."""

from collections.abc import Sequence
from types import MappingProxyType

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views
from debiaspl.debias import Correction
from debiaspl.debias.correction import at_least_float32, within
from debiaspl.debias.heads import NormalisedHead
from debiaspl.models import Network


class RIDE(Algorithm):
    """Each expert of ``network=experts`` learns the labels, and to differ from the others:
    ``sum over k of loss(z_k) - diversity * T^2 KL(softmax(z / T), softmax(z_k / T))``, where z_k are the logits of
    expert k, and z is their mean, without gradient. Late in training T depends on the class, so that experts differ
    more where labels n_c are few: ``gamma * C * n_c / n + 1 - gamma``, divided by the largest.

    The paper's loss is that of correction=ldam-drw, and it has labels alone: unlabeled_weight=0. Else it is FixMatch:
    confident labels from the mean of the experts are learned by each.

    Args:
        unlabeled_weight: weight of the unlabeled loss; 0 uses no unlabeled image, as in the paper.
        diversity: weight of the divergence from the mean; the authors' code for CIFAR-100-LT has 0.2.
        temperature_share: how much T depends on the class (gamma); 0 is a temperature of 1.
        begin: share of the training from which on T depends on the class.
    """

    needs_experts = True
    needs_pictures = "it trains several experts, and a frozen encoder has one classifier."
    own_correction = "ldam-drw"
    own_settings = MappingProxyType({"unlabeled_weight": 0.0})
    temperatures: Tensor

    def __init__(
        self,
        class_counts: Sequence[int],
        correction: Correction | None = None,
        threshold: float = 0.95,
        unlabeled_weight: float = 1.0,
        diversity: float = 0.45,
        temperature_share: float = 0.05,
        begin: float = 0.8,
    ) -> None:
        self.makes_pseudo_labels = unlabeled_weight > 0
        super().__init__(correction)
        self.views = Views(1, 1) if unlabeled_weight else Views()
        self.threshold, self.begin = within("threshold", threshold, "[0, 1]"), within("begin", begin, "[0, 1]")
        self.unlabeled_weight = within("unlabeled_weight", unlabeled_weight, "[0, inf)")
        self.diversity = within("diversity", diversity, "[0, inf)")
        within("temperature_share", temperature_share, "[0, 1)")
        counts = torch.tensor([float(count) for count in class_counts])
        raw = temperature_share * counts / counts.mean() + 1 - temperature_share
        self.register_buffer("temperatures", raw / raw.max(), persistent=False)

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        strong = batch.strong if self.unlabeled_weight else ()
        sizes = [len(images) for images in (batch.labeled, *strong)]
        labeled, *others = torch.split(experts(models.student, torch.cat((batch.labeled, *strong))), sizes, 1)
        losses = {
            "labeled": torch.stack([self.labeled_loss(each, batch.labels) for each in labeled]).sum(),
            "diversity": -self.diversity * self.divergence(labeled, batch.progress).mean(),
        }
        if not others:
            return losses
        with torch.no_grad():
            logits_weak = models.teacher(batch.weak[0])
        confidence, label = self.correction(logits_weak).max(-1)
        kept = confidence >= self.threshold
        self.report_labels(logits_weak, confidence, label, kept)
        each = torch.stack([self.unlabeled_loss(one, label, kept) for one in others[0]]).sum()
        apart = (self.divergence(others[0], batch.progress) * kept).mean()
        return losses | {"unlabeled": self.unlabeled_weight * (each - self.diversity * apart)}

    def divergence(self, logits: Tensor, progress: Tensor) -> Tensor:
        """``T^2 KL`` of each image, (N,), summed over the experts' logits, (K, N, C)."""
        temperature = torch.where(progress >= self.begin, self.temperatures, 1)
        own = (logits / temperature).log_softmax(-1)
        mean = (logits.detach().mean(0) / temperature).log_softmax(-1)
        return temperature.mean() ** 2 * (mean.exp() * (mean - own)).sum((0, 2))


def experts(network: Network, images: Tensor) -> Tensor:
    """The logits of each expert, (K, N, C); of another network, there is one."""
    features = network.embed(images)
    if isinstance(network.head, NormalisedHead):
        return network.head.each(features)
    return at_least_float32(network.head(features))[None]

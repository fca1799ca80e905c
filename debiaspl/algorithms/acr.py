"""ACR (Wei and Gan, 2023): two classifiers, and labels adjusted to the class distribution of the unlabeled images."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models, Views, WeakToStrong, hard_loss, predict_twice
from debiaspl.algorithms.mixing import one_hot
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import PLACES, at_least_float32, checked_counts, within
from debiaspl.debias.running import safe_log
from debiaspl.models import FurtherHead


class ACR(WeakToStrong):
    """A standard classifier f and a balanced one f~ on the same features; the balanced one is the result.

    With pi, the class shares among the labels, and hard labels from the weak view:

    * f learns labels from ``softmax(f - tau_t log pi)``, where they or those of ``softmax(f)`` reach the threshold;
    * f~ learns labeled images with ``f~ + balanced_tau log pi``, and labels from ``softmax(f - balanced_tau log pi)``,
      where they or those of ``softmax(f~)`` reach the threshold.

    The class distribution of the unlabeled images is estimated from the confident labels of f~: the closer it is to pi,
    the less the standard labels are adjusted. With d, the symmetric KL divergences between the estimate and pi, the
    uniform distribution, and pi reversed (the rarest class most frequent):
    ``tau_t = tau exp(d_1) / (exp(d_1) + exp(d_2) + exp(d_3))``.

    As in the paper the estimate counts labels. The released code counts each class once per batch, with a momentum of
    0.9, and averages d over 500 steps; it has ``strong_views=2``, and also uses labeled images as unlabeled ones.

    A correction acts on all labels that come from f, and on its losses.

    Args:
        tau: largest adjustment of the labels for f.
        balanced_tau: adjustment of the labels, and of the labeled loss, for f~.
        momentum: momentum of the estimated distribution.
        begin: share of the training after which it is estimated; before that tau_t is tau.
        strong_views: strong views of each image, 1 or more; losses are the mean over them.
    """

    balanced_places = frozenset(PLACES)
    shares: Tensor
    anchors: Tensor

    def __init__(
        self,
        num_classes: int,
        num_features: int,
        class_counts: Sequence[int],
        correction: Correction | None = None,
        threshold: float = 0.95,
        tau: float = 2.0,
        balanced_tau: float = 2.0,
        momentum: float = 0.99,
        begin: float = 0.01,
        strong_views: int = 1,
        **others: Any,
    ) -> None:
        super().__init__(correction, **others)
        self.views = Views(weak=1, strong=within("strong_views", strong_views, "[1, inf)"))
        self.threshold = within("threshold", threshold, "[0, 1]")
        self.tau = within("tau", tau, "[0, 1000]")
        self.balanced_tau = within("balanced_tau", balanced_tau, "[0, 1000]")
        self.momentum, self.begin = within("momentum", momentum, "[0, 1)"), within("begin", begin, "[0, 1]")
        self.balanced = FurtherHead(num_features, num_classes)
        counts = checked_counts(class_counts)
        labeled, order = counts / counts.sum(), counts.argsort()
        reversed_ = torch.empty_like(labeled).index_copy(0, order, labeled[order].flip(0))
        uniform = torch.full_like(labeled, 1 / num_classes)
        self.register_buffer("anchors", torch.stack([labeled, uniform, reversed_]), persistent=False)
        self.register_buffer("shares", uniform.clone())

    def classifier(self) -> FurtherHead:
        return self.balanced

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        standard, balanced = predict_twice(models, batch, self.joint, self.balanced)
        weak, log_shares = at_least_float32(standard.weak[0]), self.anchors[0].log()
        tau = self.adapted(batch.progress)

        # All labels use the correction's state before this batch; it learns with the last call.
        confidence, label = self.correction.probabilities(weak - tau * log_shares).max(-1)
        for_balanced = self.correction.probabilities(weak - self.balanced_tau * log_shares)
        balanced_confidence, balanced_label = for_balanced.max(-1)
        kept = (confidence >= self.threshold) | (self.correction(weak).amax(-1) >= self.threshold)
        sure, guess = at_least_float32(balanced.weak[0]).softmax(-1).max(-1)
        balanced_kept = (balanced_confidence >= self.threshold) | (sure >= self.threshold)
        self._estimate(guess, sure >= self.threshold, batch.progress)

        others = {"tau": tau, "standard_kept": kept.float().mean()}
        self.report_labels(weak, balanced_confidence, balanced_label, balanced_kept, **others)
        adjusted = at_least_float32(balanced.labeled) + self.balanced_tau * log_shares
        first = [self.unlabeled_loss(view, label, kept) for view in standard.strong]
        second = [hard_loss(at_least_float32(view), balanced_label, balanced_kept) for view in balanced.strong]
        return {
            "labeled": self.labeled_loss(standard.labeled, batch.labels),
            "unlabeled": self.unlabeled_weight * torch.stack(first).mean(),
            "balanced_labeled": F.cross_entropy(adjusted, batch.labels),
            "balanced_unlabeled": self.unlabeled_weight * torch.stack(second).mean(),
        }

    def adapted(self, progress: Tensor) -> Tensor:
        """tau_t, a scalar."""
        logs, anchors = safe_log(self.shares), self.anchors.log()
        distances = ((self.shares - self.anchors) * (logs - anchors)).sum(-1) / 2
        return (self.tau * distances.softmax(0)[0]).where(progress >= self.begin, self.tau)

    def _estimate(self, label: Tensor, sure: Tensor, progress: Tensor) -> None:
        counts = one_hot(label, self.shares) * sure[:, None]
        total = ranks.summed(counts.sum(0))
        moved = self.shares.lerp(total / total.sum().clamp_min(1), 1 - self.momentum)
        self.shares.copy_(torch.where((total.sum() > 0) & (progress >= self.begin), moved, self.shares))

"""FreeMatch (Wang et al., 2023): self-adaptive thresholds, and a fairness loss between classes."""

from typing import Any

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models, WeakToStrong, predict
from debiaspl.algorithms.mixing import one_hot
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import at_least_float32, within


class FreeMatch(WeakToStrong):
    """FixMatch with thresholds that adapt to the model, so that none has to be set.

    It has three moving averages over the weak views, each from 1 / C: of the confidence, which is the global threshold
    (tau), of the probabilities (p-tilde), and of how often each class is the label (h-tilde). The threshold of class c
    is ``tau p-tilde(c) / max p-tilde``. The averages are updated with a batch, over all ranks, before it is used.

    The fairness loss is ``- H(norm(p-tilde / h-tilde), norm(p-bar / h-bar))`` (Eq. 11), with the cross-entropy H and,
    over the kept strong views, the mean probabilities p-bar and the shares of predicted classes h-bar. The sign follows
    the paper and its code, although it increases the difference. Classes without a kept strong view are left out.

    Args:
        decay: decay of the moving averages (lambda).
        fairness_weight: weight of the fairness loss (w_f); 0.001 in the authors' configurations of CIFAR-10.
    """

    global_threshold: Tensor
    marginal: Tensor
    histogram: Tensor

    def __init__(
        self,
        num_classes: int,
        correction: Correction | None = None,
        decay: float = 0.999,
        fairness_weight: float = 0.001,
        **others: Any,
    ) -> None:
        super().__init__(correction, **others)
        self.decay, self.fairness_weight = within("decay", decay, "[0, 1)"), fairness_weight
        self.register_buffer("global_threshold", torch.full((), 1 / num_classes))
        self.register_buffer("marginal", torch.full((num_classes,), 1 / num_classes))
        self.register_buffer("histogram", torch.full((num_classes,), 1 / num_classes))

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits, (logits_weak,), (logits_strong,) = predict(models, batch, self.joint)

        probabilities = self.correction(logits_weak).to(self.marginal.dtype)
        confidence, label = probabilities.max(-1)
        self._follow(confidence, probabilities, label)
        keep = confidence >= self.thresholds()[label]
        self.report_labels(logits_weak, confidence, label, keep, threshold=self.global_threshold)
        losses = self.both_losses(logits, batch.labels, logits_strong, label, keep)
        if self.fairness_weight:
            losses["fairness"] = self.fairness_weight * self._fairness(logits_strong, keep)
        return losses

    def _follow(self, confidence: Tensor, probabilities: Tensor, label: Tensor) -> None:
        classes = len(self.marginal)
        shares = one_hot(label, probabilities).mean(0)
        means = ranks.mean(torch.cat([probabilities.mean(0), shares, confidence.mean().reshape(1)]))
        self.marginal.lerp_(means[:classes], 1 - self.decay)
        self.histogram.lerp_(means[classes:-1], 1 - self.decay)
        self.global_threshold.lerp_(means[-1], 1 - self.decay)

    def thresholds(self) -> Tensor:
        return self.global_threshold * self.marginal / self.marginal.max()

    def _fairness(self, logits_strong: Tensor, keep: Tensor) -> Tensor:
        """The fairness loss, on raw predictions: a margin needs the labels of a loss, and here are none."""
        wanted = self.marginal / self.histogram.clamp_min(torch.finfo(self.histogram.dtype).tiny)
        strong = at_least_float32(logits_strong).softmax(-1)
        mass = ranks.summed_with_gradient((strong * keep[:, None]).sum(0))
        labels = ranks.summed((one_hot(strong.argmax(-1), strong) * keep[:, None]).sum(0))
        present = labels > 0
        ratio = mass.where(present, 0) / labels.where(present, 1)  # p-bar / h-bar: the size of the batch cancels
        return (wanted / wanted.sum() * (ratio / ratio.sum()).where(present, 1).log()).sum()

"""FlexMatch (Zhang et al., 2021): curriculum pseudo labelling, a threshold for each class."""

from typing import Any

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models, WeakToStrong, predict
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import within


class FlexMatch(WeakToStrong):
    """FixMatch with a lower threshold for classes that are learned less well.

    ``sigma(c)`` counts the images whose latest prediction at or above tau was c, ``beta(c) = sigma(c) / max sigma``,
    and the threshold is ``M(beta(c)) tau`` with ``M(x) = x / (2 - x)``. As long as more images have no confident
    prediction than any class has, their number replaces the maximum (warm-up).

    Args:
        threshold: threshold of the best learned class, and of the labels that are counted (tau).
        warm_up: thresholds rise from 0 as images are labeled for the first time.
    """

    latest: Tensor

    def __init__(
        self,
        num_classes: int,
        num_unlabeled: int,
        correction: Correction | None = None,
        threshold: float = 0.95,
        warm_up: bool = True,
        **others: Any,
    ) -> None:
        super().__init__(correction, **others)
        self.num_classes, self.warm_up = num_classes, warm_up
        self.threshold = within("threshold", threshold, "[0, 1]")
        self.register_buffer("latest", torch.full((num_unlabeled,), -1))  # -1: never confident

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits, (logits_weak,), (logits_strong,) = predict(models, batch, self.joint)

        confidence, label = self.correction(logits_weak).max(-1)
        thresholds = self.thresholds()
        keep = confidence >= thresholds[label]
        self._remember(batch.positions, label, confidence >= self.threshold)
        self.report_labels(logits_weak, confidence, label, keep, threshold=thresholds.mean())
        return self.both_losses(logits, batch.labels, logits_strong, label, keep)

    def thresholds(self) -> Tensor:
        """Of each class, (C,), from the latest labels."""
        counts = self.latest.new_zeros(self.num_classes + 1)
        counts.scatter_add_(0, self.latest + 1, torch.ones_like(self.latest))
        unused, learned = counts[0], counts[1:]
        most = torch.maximum(learned.max(), unused) if self.warm_up else learned.max()
        status = learned / most.clamp_min(1)
        return self.threshold * status / (2 - status)

    def _remember(self, positions: Tensor, label: Tensor, confident: Tensor) -> None:
        # In a small set a batch can contain an image twice: the later one counts, which scatter would not guarantee.
        positions, label = ranks.gathered(torch.stack([positions, label.where(confident, -1)], 1)).unbind(1)
        place = torch.arange(len(label), device=label.device).where(label >= 0, -1)
        last = torch.full_like(self.latest, -1).scatter_reduce_(0, positions, place, "amax")
        self.latest.copy_(label[last.clamp_min(0)].where(last >= 0, self.latest))

"""ABC (Lee, Shin and Kim, 2021): FixMatch with an auxiliary classifier that is trained equally on every class."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Logits, Models, predict_twice
from debiaspl.algorithms.fixmatch import FixMatch
from debiaspl.algorithms.mixing import ramp
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import at_least_float32, within
from debiaspl.models import FurtherHead


class ABC(FixMatch):
    """FixMatch with an auxiliary balanced classifier on the same features; the auxiliary classifier is the result.

    It adds two losses, of which random masks make each class count equally often. N_k is the number of labels of class
    k, N_L that of the smallest class that has any:

    * the cross-entropy of a labeled image of class y, with probability ``N_L / N_y`` (Eq. 1 and 2 of the paper);
    * the cross-entropy of the strong view of an unlabeled image with the auxiliary classifier's own soft prediction q
      for the weak view (without gradient), if max q reaches the threshold, with probability ``N_L / N_k`` for
      k = argmax q (Eq. 3 and 4), summed over strong views. The authors use two; so does ``views=2``.

    Few labels reach the threshold at first, so the second probability decreases linearly from 1 to ``N_L / N_k``.

    The correction applies to FixMatch's labels and losses, and one of the trained classifier to the auxiliary one.

    Args:
        auxiliary_weight: weight of the auxiliary classifier's losses.
        ramp_up: share of the training over which masks of unlabeled images become balanced; 0 starts balanced.
    """

    balanced_places = frozenset({"classifier"})
    balance: Tensor

    def __init__(
        self,
        num_classes: int,
        num_features: int,
        class_counts: Sequence[int],
        correction: Correction | None = None,
        auxiliary_weight: float = 1.0,
        ramp_up: float = 1.0,
        **others: Any,
    ) -> None:
        super().__init__(correction, **others)
        if self.strong_share < 1:
            raise ValueError(f"strong_share is {self.strong_share}, but ABC needs all views. Use strong_share=1.")
        self.auxiliary_weight, self.ramp_up = auxiliary_weight, within("ramp_up", ramp_up, "[0, 1]")
        self.auxiliary = FurtherHead(num_features, num_classes)
        counts = torch.tensor([float(count) for count in class_counts])
        least = counts[counts > 0].min()
        self.register_buffer("balance", least / counts.clamp_min(least), persistent=False)

    def classifier(self) -> FurtherHead:
        return self.auxiliary

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        standard, balanced = predict_twice(models, batch, self.joint, self.auxiliary)
        return self.losses_of(standard, batch.labels) | self._auxiliary_losses(balanced, batch)

    def _auxiliary_losses(self, predicted: Logits, batch: Batch) -> dict[str, Tensor]:
        chosen = chosen_with(self.balance[batch.labels], batch.generator)
        labeled = F.cross_entropy(at_least_float32(predicted.labeled), batch.labels, reduction="none") * chosen

        target = at_least_float32(torch.stack(predicted.weak)).mean(0).softmax(-1)
        confidence, label = target.max(-1)
        balance = 1 - ramp(batch.progress, self.ramp_up) * (1 - self.balance)
        used = chosen_with(balance[label], batch.generator) & (confidence >= self.threshold)
        strong = [F.cross_entropy(at_least_float32(view), target, reduction="none") for view in predicted.strong]
        unlabeled = torch.stack([(loss * used).mean() for loss in strong]).sum()
        monitors = {"auxiliary_used": used.to(confidence.dtype).mean(), "auxiliary_confidence": confidence.mean()}
        self.report(**self.monitors, **monitors)
        weight = self.auxiliary_weight
        return {"auxiliary_labeled": weight * labeled.mean(), "auxiliary_unlabeled": weight * unlabeled}


def chosen_with(probability: Tensor, generator: torch.Generator | None) -> Tensor:
    """Choose each row with its probability. Every rank draws for all ranks, and uses its own part."""
    drawn = torch.rand(ranks.count() * len(probability), device=probability.device, generator=generator)
    return ranks.own_part(drawn) < probability

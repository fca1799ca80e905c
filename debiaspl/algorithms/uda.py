"""UDA (Xie et al., 2020): the strong view learns the sharpened prediction of the weak view."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models, WeakToStrong, predict
from debiaspl.algorithms.mixing import sharpen
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import at_least_float32, within

ANNEALING = ("off", "linear", "log", "exp")


class UDA(WeakToStrong):
    """Soft labels: the divergence KL(p || q) between the strong view's prediction q and the weak view's, sharpened, p,
    of images whose p is confident before sharpening. With a temperature near 0 this is FixMatch.

    Args:
        temperature: temperature of the labels, p ** (1 / T); 1 leaves them as they are (tau).
        annealing: training signal annealing. Labeled images whose class has a probability above eta are left out, so
            that few labels are not memorised; eta grows from 1 / classes to 1, in a straight line (``linear``), early
            (``log``, for labels that are hard to memorise) or late (``exp``). ``off``: all labeled images are used.
    """

    hard_labels = False

    def __init__(
        self,
        correction: Correction | None = None,
        threshold: float = 0.8,
        temperature: float = 0.4,
        annealing: str = "off",
        **others: Any,
    ) -> None:
        super().__init__(correction, **others)
        if annealing not in ANNEALING:
            raise ValueError(f"annealing is {annealing!r}, expected one of {', '.join(ANNEALING)}.")
        self.threshold = within("threshold", threshold, "[0, 1]")
        self.temperature = within("temperature", temperature, "(0, inf)")
        self.annealing = annealing

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits, (logits_weak,), (logits_strong,) = predict(models, batch, self.joint)
        probabilities = self.correction(logits_weak)
        confidence, label = probabilities.max(-1)
        keep = confidence >= self.threshold
        target = sharpen(probabilities, self.temperature)
        predicted = self.correction.margin(logits_strong).log_softmax(-1)
        divergence = F.kl_div(predicted, target, reduction="none").sum(-1)

        self.report_labels(logits_weak, confidence, label, keep)
        return {
            "labeled": self._labeled(logits, batch),
            "unlabeled": self.unlabeled_weight * (divergence * keep).mean(),
        }

    def _labeled(self, logits: Tensor, batch: Batch) -> Tensor:
        """Averaged over the images of all ranks whose class is not yet predicted too confidently."""
        if self.annealing == "off":
            return self.labeled_loss(logits, batch.labels)
        right = at_least_float32(logits.detach()).softmax(-1).gather(1, batch.labels[:, None]).squeeze(1)
        use = right <= self.limit(batch.progress, logits.shape[-1])
        margin = self.correction.labeled_margin(logits, batch.labels)
        losses = F.cross_entropy(margin, batch.labels, reduction="none") * use
        # The loss is averaged over ranks, so each rank returns its share of the joint mean times their number.
        return losses.sum() * ranks.count() / ranks.summed(use.sum()).clamp_min(1)

    def limit(self, progress: Tensor, classes: int) -> Tensor:
        """The highest probability of a label that is still learned from (eta)."""
        grown = {"linear": progress, "log": 1 - (-5 * progress).exp(), "exp": (5 * (progress - 1)).exp()}
        return grown[self.annealing] * (1 - 1 / classes) + 1 / classes

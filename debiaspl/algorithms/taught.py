"""Learning from hints, the labels of another model or of a graph: always, or where the student is not confident."""

from typing import Any

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models, WeakToStrong, predict
from debiaspl.data import Hints
from debiaspl.debias import Correction
from debiaspl.debias.correction import within


class TaughtFixMatch(WeakToStrong):
    """FixMatch that labels images below the threshold with another model, if that is confident: with the hints of the
    task, or, if it has none, with labels propagated over the graph of the features.

    Args:
        sure: minimum confidence of a hint; the authors' scripts use 0.4.
    """

    about = "FixMatch that asks another model, such as CLIP, where the student is not confident."
    hints_from_graph = True
    taught: Tensor

    def __init__(
        self,
        hints: Hints | None = None,
        correction: Correction | None = None,
        sure: float = 0.4,
        threshold: float = 0.95,
        **others: Any,
    ) -> None:
        super().__init__(correction, **others)
        hints, self.threshold = _given(hints, "taught"), within("threshold", threshold, "[0, 1]")
        self.register_buffer("taught", torch.where(hints.confidence >= within("sure", sure, "[0, 1]"), hints.label, -1))

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits, (logits_weak,), (logits_strong,) = predict(models, batch, self.joint)
        confidence, predicted = self.correction(logits_weak).max(-1)
        confident, hint = confidence >= self.threshold, self.taught[batch.positions]
        label = torch.where(~confident & (hint >= 0), hint, predicted)
        keep = confident | (hint >= 0)

        self.report_labels(logits_weak, confidence, label, keep, taught=(keep & ~confident).float().mean())
        return self.both_losses(logits, batch.labels, logits_strong, label, keep)


class GraphLabels(WeakToStrong):
    """The strong view of every unlabeled image learns the label that spread to it over a graph of nearest neighbours
    (Zhou et al., 2004), before the first step.

    The labels do not change during training; ``fixmatch`` with ``first_classifier=graph`` makes its own labels after
    that start, and is usually better. The features must be good before the first step: from a pretrained start or
    encoder.
    """

    about = "learns the labels that spread over a graph of the features (Zhou et al., 2004)."
    hints_from_graph = True
    taught: Tensor
    sureness: Tensor

    def __init__(
        self,
        hints: Hints | None = None,
        correction: Correction | None = None,
        threshold: float = 0.0,
        joint: bool = False,
        **others: Any,
    ) -> None:
        super().__init__(correction, joint=joint, **others)
        hints, self.threshold = _given(hints, "graph"), within("threshold", threshold, "[0, 1]")
        self.register_buffer("taught", hints.label.clone())
        self.register_buffer("sureness", hints.confidence.float().clone())

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        logits, (logits_weak,), (logits_strong,) = predict(models, batch, self.joint)
        self.correction(logits_weak)  # it learns; the labels are the graph's
        label, confidence = self.taught[batch.positions], self.sureness[batch.positions]
        kept = (confidence >= self.threshold) & (label >= 0)  # another model's hints may have no label
        label = label.clamp_min(0)
        self.report_labels(logits_weak, confidence, label, kept)
        return self.both_losses(logits, batch.labels, logits_strong, label, kept)


def _given(hints: Hints | None, name: str) -> Hints:
    if hints is None:
        raise ValueError(f"{name} needs hints, and this task has none: debiaspl zeroshot --labels, or Task(hints=...).")
    return hints

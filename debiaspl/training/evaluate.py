"""Evaluates a model on images it was not trained with."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from debiaspl._confusion import Cells
from debiaspl.data import ImageSet
from debiaspl.data.csv_text import csv_line
from debiaspl.debias import ranks
from debiaspl.models import Network, predict_set
from debiaspl.models.predict import BATCH
from debiaspl.training.group import ALONE, Group


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predictions for a set with known labels."""

    images: ImageSet
    label: Tensor
    """Predicted class of every image."""
    confidence: Tensor
    """Probability of the predicted class."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, with the reason; they are not counted."""

    @property
    def accuracy(self) -> float:
        """Top-1 accuracy, 0 to 1."""
        return float((self.label == self.images.truth.cpu()).double().mean())

    @property
    def confusion(self) -> Cells:
        return Cells.of(self.images.truth.cpu(), self.label, self.images.num_classes)

    def to_csv(self) -> str:
        """``file_name,label,confidence,truth``, one line per image."""
        lines = [csv_line(["file_name", "label", "confidence", "truth"])]
        names = (*self.images.classes, "")  # -1, for an unknown class, is the last one
        columns = self.images.ids, self.label.tolist(), self.confidence.tolist(), self.images.truth.tolist()
        for name, label, confidence, truth in zip(*columns, strict=True):
            lines.append(csv_line([name, names[label], f"{confidence:.6f}", names[truth]]))
        return "".join(lines)


def predict_all(model: Network, images: ImageSet, group: Group = ALONE) -> Tensor:
    """Probabilities of every image, (N, C), in float32; uniform for a file that cannot be read.

    The ranks of a group share the work, so all of them must call this; all have the same model and get the same result.
    """
    result = torch.zeros((len(images), images.num_classes), device=images.labels.device)
    for seen in predict_set(model, images, BATCH, group.number, group.count):
        if seen.skipped:
            result[torch.tensor(list(seen.skipped), device=result.device)] = 1 / images.num_classes
        result[seen.positions.to(result.device)] = seen.probabilities
    if group.count > 1:
        group.largest(0)  # first between the hosts: on a GPU a rank that hangs would not be noticed
        ranks.add_up(result)  # exact, because every row is 0 on all ranks but one
    return result


def evaluate(model: Network, images: ImageSet, group: Group = ALONE) -> Evaluation:
    """Predict every readable image, in float32, with a model in eval mode.

    The ranks of a group share the work, so all of them must call this; all have the same model and get the same result.
    """
    positions, labels, confidences, skipped = zip(*group.everyone(_predicted(model, images, group)), strict=True)
    read, order = torch.cat(positions).sort()
    seen = images if len(read) == len(images) else images.select(read)
    reasons = sorted(pair for one in skipped for pair in one.items())
    bad = {images.ids[position]: reason for position, reason in reasons}
    return Evaluation(seen, torch.cat(labels)[order], torch.cat(confidences)[order], bad)


def _predicted(model: Network, images: ImageSet, group: Group) -> tuple[Tensor, Tensor, Tensor, dict[int, str]]:
    """One rank's positions, labels and confidences of the images that it could read, and why not of the others."""
    where = images.labels.device
    # A rank may have no batch at all.
    read = [torch.empty(0, dtype=torch.int64)]
    labels = [torch.empty(0, dtype=torch.int64, device=where)]
    confidences = [torch.empty(0, dtype=torch.float32, device=where)]
    skipped: dict[int, str] = {}
    for seen in predict_set(model, images, BATCH, group.number, group.count):
        confidence, label = seen.probabilities.max(-1)
        read.append(seen.positions)
        labels.append(label)
        confidences.append(confidence)
        skipped |= seen.skipped
    return torch.cat(read), torch.cat(labels).cpu(), torch.cat(confidences).cpu(), skipped

"""How good a model is on images it has not seen."""

import csv
import io
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from debiaspl.data import ImageSet, in_order
from debiaspl.debias import ranks
from debiaspl.models import scale
from debiaspl.training.group import ALONE, Group

BATCH = 500
"""Images that a network sees at once. Ranks take whole batches in turn: in a batch of another size a picture might have
other last bits."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predictions for a set whose truth is known."""

    images: ImageSet
    label: Tensor
    """Predicted class of every image."""
    confidence: Tensor
    """Its probability."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, with the reason; they count nowhere."""

    @property
    def accuracy(self) -> float:
        """Top-1, 0 to 1."""
        return float((self.label == self.images.truth.cpu()).double().mean())

    @property
    def confusion(self) -> list[list[int]]:
        """Rows: true class. Columns: predicted class."""
        classes = self.images.num_classes
        cells = self.images.truth.cpu() * classes + self.label
        counts: list[list[int]] = torch.bincount(cells, minlength=classes**2).reshape(classes, classes).tolist()
        return counts

    @property
    def recall(self) -> list[float | None]:
        """Of each class: the share of its images that were recognised; None for a class without images."""
        return [row[number] / sum(row) if sum(row) else None for number, row in enumerate(self.confusion)]

    def to_csv(self) -> str:
        """``file_name,label,confidence,truth``, one line per image."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["file_name", "label", "confidence", "truth"])
        names = (*self.images.classes, "")  # -1, for images whose class nobody knows, is the last one
        columns = self.images.ids, self.label.tolist(), self.confidence.tolist(), self.images.truth.tolist()
        for name, label, confidence, truth in zip(*columns, strict=True):
            table.writerow([name, names[label], f"{confidence:.6f}", names[truth]])
        return text.getvalue()


@torch.no_grad()
def predict_all(model: nn.Module, images: ImageSet, group: Group = ALONE) -> Tensor:
    """Probabilities of every image, (N, C), in float32; even ones for a file that cannot be read.

    The ranks of a group share the work, so all of them must ask; all have the same model, and are given the same.
    """
    found = torch.zeros((len(images), images.num_classes), device=images.labels.device)
    for drawn in in_order(images, BATCH, group.number, group.count):
        if drawn.skipped:
            found[torch.tensor(list(drawn.skipped), device=found.device)] = 1 / images.num_classes
        pictures = scale(drawn.pictures[0].to(images.labels.device))
        found[drawn.positions.to(found.device)] = model(pictures).float().softmax(-1)
    if group.count > 1:
        group.largest(0)  # the hosts first: on a GPU nobody would notice that another rank hangs
        ranks.add_up(found)  # exact: every row is 0 on all ranks but one
    return found


class _Part(NamedTuple):
    """What one rank has predicted: of the images that it could read, and no others."""

    positions: Tensor
    label: Tensor
    confidence: Tensor
    skipped: dict[int, str]


def evaluate(model: nn.Module, images: ImageSet, group: Group = ALONE) -> Evaluation:
    """Predict every image that can be read, in float32, with a model in eval mode.

    The ranks of a group share the work, so all of them must ask; all have the same model, and are given the same.
    """
    parts = group.everyone(_predicted(model, images, group))
    positions, order = torch.cat([part.positions for part in parts]).sort()
    label = torch.cat([part.label for part in parts])[order]
    confidence = torch.cat([part.confidence for part in parts])[order]
    seen = images if len(positions) == len(images) else images.select(positions)
    reasons = sorted(pair for part in parts for pair in part.skipped.items())
    skipped = {images.ids[position]: reason for position, reason in reasons}
    return Evaluation(seen, label, confidence, skipped)


@torch.inference_mode()
def _predicted(model: nn.Module, images: ImageSet, group: Group) -> _Part:
    where = images.labels.device
    # A rank may have no batch at all.
    read = [torch.empty(0, dtype=torch.int64)]
    labels = [torch.empty(0, dtype=torch.int64, device=where)]
    confidences = [torch.empty(0, dtype=torch.float32, device=where)]
    skipped: dict[int, str] = {}
    for drawn in in_order(images, BATCH, group.number, group.count):
        confidence, label = model(scale(drawn.pictures[0].to(where))).float().softmax(-1).max(-1)
        read.append(drawn.positions)
        labels.append(label)
        confidences.append(confidence)
        skipped |= drawn.skipped
    return _Part(torch.cat(read), torch.cat(labels).cpu(), torch.cat(confidences).cpu(), skipped)

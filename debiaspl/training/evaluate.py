"""How good a model is on images it has not seen."""

import csv
import io
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from debiaspl.data import ImageSet, in_order
from debiaspl.models import scale

BATCH = 500


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
def predict_all(model: nn.Module, images: ImageSet) -> Tensor:
    """Probabilities of every image, (N, C), in float32; even ones for a file that cannot be read."""
    found = torch.full((len(images), images.num_classes), 1 / images.num_classes, device=images.labels.device)
    for drawn in in_order(images, BATCH):
        pictures = scale(drawn.pictures[0].to(images.labels.device))
        found[drawn.positions.to(found.device)] = model(pictures).float().softmax(-1)
    return found


@torch.inference_mode()
def evaluate(model: nn.Module, images: ImageSet) -> Evaluation:
    """Predict every image that can be read, in float32, with a model in eval mode."""
    read: list[Tensor] = []
    parts: list[Tensor] = []
    skipped: dict[str, str] = {}
    for drawn in in_order(images, BATCH):
        read.append(drawn.positions)
        parts.append(model(scale(drawn.pictures[0].to(images.labels.device))).float().softmax(-1))
        skipped |= {images.ids[position]: reason for position, reason in drawn.skipped.items()}
    confidence, label = torch.cat(parts).max(-1)
    seen = torch.cat(read)
    seen_images = images if len(seen) == len(images) else images.select(seen)
    return Evaluation(seen_images, label.cpu(), confidence.cpu(), skipped)

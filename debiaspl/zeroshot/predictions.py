"""Predictions of a zero-shot model for every image, and which are confident enough to learn from."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from debiaspl._shares import distance
from debiaspl.data import UNLABELED, DataError
from debiaspl.data.csv_text import csv_line


@dataclass(frozen=True, eq=False)
class Predictions:
    """Class probabilities for every image that could be read."""

    probabilities: Tensor
    """float32, (N, C), on the CPU; rows sum to 1."""
    classes: tuple[str, ...]
    ids: tuple[str, ...]
    """One name per image."""
    teacher: str
    """The name of the teacher, for a table."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Images that could not be read, with the reason."""

    def __post_init__(self) -> None:
        shape, expected = tuple(self.probabilities.shape), (len(self.ids), len(self.classes))
        if shape != expected:
            raise DataError(
                f"{self.teacher} gives probabilities of shape {shape}, expected {expected}: a row for each image, a "
                "column for each class."
            )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def label(self) -> Tensor:
        return self.probabilities.argmax(-1)

    @property
    def confidence(self) -> Tensor:
        return self.probabilities.amax(-1)

    def counts(self, confidence: float = 0.0) -> list[int]:
        """Number of images per class, of those with at least this confidence."""
        kept = self.label[self.confidence >= confidence]
        return torch.bincount(kept, minlength=len(self.classes)).tolist()

    def confident(self, confidence: float, reliable: bool = True) -> Tensor:
        """A label for each image that is confident enough, (N,), -1 for the others: the student's training labels. If
        there are too few, the error proposes a lower confidence only for a ``reliable`` teacher."""
        labels = torch.where(self.confidence >= confidence, self.label, UNLABELED)
        classes = sorted(set(labels.tolist()) - {UNLABELED})
        if len(classes) < 2:
            images = f"only some of {self.classes[classes[0]]!r}" if classes else "none"
            half = f"Lower --confidence (half of the images reach {float(self.confidence.median()):.2f}), or use other"
            todo = f"{half} class names" if reliable else "Use other class names, another --model, or a few --labels"
            raise DataError(
                f"of {len(self):,} images {images} reach a confidence of {confidence:g}; the highest is "
                f"{float(self.confidence.max()):.2f}. A student needs labels of at least two classes. {todo}."
            )
        return labels

    def to_csv(self) -> str:
        """``file_name,label,confidence``, one line per image."""
        names = [self.classes[label] for label in self.label.tolist()]
        return labels_csv(zip(self.ids, names, self.confidence.tolist(), strict=True))


def labels_csv(rows: Iterable[tuple[str, str, float]]) -> str:
    """``file_name,label,confidence``, for any names."""
    lines = (csv_line((name, label, f"{confidence:.6f}")) for name, label, confidence in rows)
    return "".join(("file_name,label,confidence\n", *lines))


def count_lines(predictions: Predictions, confidence: float, reliable: bool = True) -> list[str]:
    """What to know before training: number of labels per class, how unbalanced they are, and what is missing;
    ``reliable`` as in ``confident``."""
    counts = predictions.counts(confidence)
    pairs = ", ".join(f"{name} {count:,}" for name, count in zip(predictions.classes, counts, strict=True))
    total, off = sum(counts), distance(counts) if any(counts) else 0.0
    lines = [
        f"{total:,} of {len(predictions):,} images have a confidence of {confidence:g} or more and become labels: "
        f"{pairs}. {100 * off:.0f} % of them would need another class for equal shares."
    ]
    missing = [name for name, count in zip(predictions.classes, counts, strict=True) if not count]
    if missing:
        lines.append(
            f"No confident image of {', '.join(missing)}: a student can hardly learn a class without examples. "
            f"Use another class name (--classes) or other --templates{', or lower --confidence' if reliable else ''}."
        )
    return lines

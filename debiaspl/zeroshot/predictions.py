"""Predictions of a zero-shot model, which of them become labels, and the table that compares methods."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from debiaspl._shares import almost_none, distance, ratio, reference_name
from debiaspl.data import UNLABELED, DataError
from debiaspl.data.csv_text import csv_line

HEADER = ("method", "accuracy %", "worst %", "off shares %", "almost none")


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

    def count_lines(self, confidence: float, reliable: bool = True) -> list[str]:
        """What to know before training: number of labels per class, how unbalanced they are, and what is missing;
        ``reliable`` as in ``confident``."""
        counts = self.counts(confidence)
        pairs = ", ".join(f"{name} {count:,}" for name, count in zip(self.classes, counts, strict=True))
        off = distance(counts) if any(counts) else 0.0
        lines = [
            f"{sum(counts):,} of {len(self):,} images have a confidence of {confidence:g} or more and become labels: "
            f"{pairs}. {100 * off:.0f} % of them would need another class for equal shares."
        ]
        missing = [name for name, count in zip(self.classes, counts, strict=True) if not count]
        if missing:
            lines.append(
                f"No confident image of {', '.join(missing)}: a student can hardly learn a class without examples. Use "
                f"another class name (--classes) or other --templates{', or lower --confidence' if reliable else ''}."
            )
        return lines

    def to_csv(self) -> str:
        """``file_name,label,confidence``, one line per image."""
        labels = [self.classes[label] for label in self.label.tolist()]
        shares = [f"{confidence:.6f}" for confidence in self.confidence.tolist()]
        return "file_name,label,confidence\n" + "".join(map(csv_line, zip(self.ids, labels, shares, strict=True)))


@dataclass(frozen=True, eq=False)
class Row:
    """One method in the final table: its label for every image and, if known, the true label."""

    method: str
    label: Tensor
    """int64, (N,)."""
    num_classes: int
    truth: Tensor | None = None
    """int64, (N,), -1 if it is not known."""

    @property
    def counts(self) -> list[int]:
        return torch.bincount(self.label, minlength=self.num_classes).tolist()

    @property
    def true_counts(self) -> list[int] | None:
        """The true counts; None if some classes are not known: then the counts are compared with equal shares."""
        if self.truth is None or not len(self.truth) or int(self.truth.min()) < 0:
            return None
        return torch.bincount(self.truth, minlength=self.num_classes).tolist()

    def to_json(self) -> dict[str, Any]:
        counts, true = self.counts, self.true_counts
        values: dict[str, Any] = {
            "counts": counts,
            "distance": distance(counts, true),
            "distance_from": reference_name(true),
            "almost_none": almost_none(counts, true),
            "imbalance": ratio(counts),
        }
        if self.truth is None:
            return values
        right = self.label == self.truth
        own = [right[self.truth == number].double() for number in range(self.num_classes)]
        recall = [float(part.mean()) if len(part) else None for part in own]
        known = self.truth >= 0
        return values | {
            "accuracy": float(right[known].double().mean()),
            "recall": recall,
            "evaluated": int(known.sum()),
        }

    def cells(self) -> tuple[str, ...]:
        values = self.to_json()
        recalls = [recall for recall in values.get("recall", ()) if recall is not None]
        return (
            self.method,
            f"{100 * values['accuracy']:.1f}" if "accuracy" in values else "-",
            f"{100 * min(recalls):.0f}" if recalls else "-",
            f"{100 * values['distance']:.0f}",
            f"{values['almost_none']} of {self.num_classes}" if values["almost_none"] else "-",
        )


def column_notes(rows: Sequence[Row]) -> str:
    """What the columns of the table are, for its foot."""
    shares = "equal shares" if rows[0].true_counts is None else "the true shares"
    worst = "" if rows[0].truth is None else "worst %: recall of the class that is recognised least. "
    return (
        f"{worst}off shares %: predictions that would need another class for {shares} of the classes. almost none: "
        "classes with less than a tenth of the predictions that they would then have."
    )


def markdown(header: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    lines = [header, ("---",) * len(header), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

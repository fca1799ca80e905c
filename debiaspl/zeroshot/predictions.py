"""Predictions of a zero-shot model, which of them become labels, and the table that compares methods."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from debiaspl._measures import ALMOST_NONE, Cells, almost_none, distance, ratio, reference_name
from debiaspl.data import UNLABELED, DataError
from debiaspl.data.text import csv_line, shown

HEADER = ("method", "accuracy %", "worst %", "off shares %", "almost none")
PER_CLASS = 20
"""How many of a teacher's predictions of each class become labels."""
TODO = "Use other class names (--classes), another --model"


def class_counts(labels: Tensor, classes: int) -> list[int]:
    return torch.bincount(labels, minlength=classes).tolist()


def rank_in_class(label: Tensor, confidence: Tensor) -> Tensor:
    """How many images of the same class are more confident, (N,)."""
    order = confidence.argsort(descending=True, stable=True)
    order = order[label[order].argsort(stable=True)]
    counts, rank = torch.bincount(label), torch.empty_like(label)
    rank[order] = torch.arange(len(label)) - (counts.cumsum(0) - counts)[label[order]]
    return rank


@dataclass(frozen=True, eq=False)
class Predictions:
    """Class probabilities for every image that could be read."""

    probabilities: Tensor
    """float32, (N, C), on the CPU; rows sum to 1."""
    classes: tuple[str, ...]
    ids: tuple[str, ...]
    teacher: str
    skipped: dict[str, str] = field(default_factory=dict)
    """Images that could not be read, with the reason."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def label(self) -> Tensor:
        return self.probabilities.argmax(-1)

    @property
    def confidence(self) -> Tensor:
        return self.probabilities.amax(-1)

    @property
    def counts(self) -> list[int]:
        """Number of images per predicted class."""
        return class_counts(self.label, len(self.classes))

    def choose(self, confidence: float | None, per_class: int) -> Tensor:
        """The student's training labels, (N,), -1 for none: the predictions of at least this confidence; if it is None,
        the ``per_class`` most confident ones of each predicted class. A threshold drops the classes of which a teacher
        is never sure, though it may be right about them."""
        sure, label = self.probabilities.max(-1)
        chosen = rank_in_class(label, sure) < per_class if confidence is None else sure >= confidence
        labels = torch.where(chosen, label, UNLABELED)
        classes = [self.classes[label] for label in set(labels.tolist()) - {UNLABELED}]
        if len(classes) < 2:
            least, lower = "", ""
            if confidence is not None:
                least = f" with a confidence of {confidence:g}; its highest is {float(sure.max()):.2f}"
                lower = ", a lower --confidence"
            found = f"{self.teacher} predicts {f'only {classes[0]}' if classes else 'no class'}{least}"
            raise DataError(f"{found}. A student needs two classes. {TODO}{lower} or --labels.")
        return labels

    def about_labels(self, labels: Tensor, confidence: float | None) -> str:
        """What to know before training: how many labels each class has, and what to do if one has none."""
        counts = class_counts(labels[labels >= 0], len(self.classes))
        pairs = shown([f"{name} {count:,}" for name, count in zip(self.classes, counts, strict=True)], limit=20)
        how = "the most confident of their class" if confidence is None else f"of a confidence from {confidence:g} on"
        todo = f" {self.unlearned(labels)} {TODO} or --templates." if 0 in counts else ""
        return f"{sum(counts):,} of {len(self):,} images, {how}, become labels: {pairs}.{todo}"

    def unlearned(self, labels: Tensor) -> str:
        """Which classes have no label and so no student, as a sentence; empty if all have."""
        counts = class_counts(labels[labels >= 0], len(self.classes))
        without = [name for name, count in zip(self.classes, counts, strict=True) if not count]
        return f"A class without a label cannot be learned: {shown(without)}." if without else ""

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
    """int64, (N,), -1 if it is not known, or if a student learned from it: such an image measures nothing."""
    learned: Tensor | None = None
    """int64, (N,): labels that a student learned from, -1 for none. They count among the true shares."""

    @property
    def confusion(self) -> Cells:
        truth = torch.full_like(self.label, UNLABELED) if self.truth is None else self.truth
        return Cells.of(truth, self.label, self.num_classes)

    @property
    def true_counts(self) -> list[int] | None:
        """The true counts; None if some classes are not known: then the counts are compared with equal shares."""
        if self.truth is None or not len(self.truth):
            return None
        true = self.truth if self.learned is None else self.truth.maximum(self.learned)
        return None if int(true.min()) < 0 else class_counts(true, self.num_classes)

    def to_json(self) -> dict[str, Any]:
        counts, true = class_counts(self.label, self.num_classes), self.true_counts
        values: dict[str, Any] = {
            "counts": counts,
            "distance": distance(counts, true),
            "distance_from": reference_name(true),
            "almost_none": almost_none(counts, true),
            "imbalance": ratio(counts),
        }
        if self.truth is None:
            return values
        found = self.confusion
        return values | {"accuracy": found.accuracy, "recall": found.recall, "evaluated": found.images}

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


def lost_classes(label: Tensor, teacher: Predictions) -> list[str]:
    """The classes of which a student has less than a tenth of its teacher's predictions."""
    counts = zip(teacher.classes, class_counts(label, len(teacher.classes)), teacher.counts, strict=True)
    return [name for name, own, before in counts if own < ALMOST_NONE * before]


def column_notes(rows: Sequence[Row]) -> str:
    """What the columns of the table are, for its foot."""
    shares = "equal shares" if rows[0].true_counts is None else "the true shares"
    off = f"off shares %: predictions that would need another class for {shares}"
    few = "almost none: classes with less than a tenth of the predictions that they would then have"
    return f"worst %: recall of the class that is recognised least. {off}. {few}."

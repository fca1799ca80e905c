"""The final table: the zero-shot model alone, and its students."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from debiaspl._shares import almost_none, distance, ratio, reference_name

HEADER = ("method", "accuracy %", "worst %", "off shares %", "almost none")


@dataclass(frozen=True, eq=False)
class Row:
    """One method: its label for every image and, if known, the true label."""

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

    @property
    def recall(self) -> list[float | None]:
        """Recall of each class: the share of its images that are predicted correctly; None without images."""
        if self.truth is None:
            return [None] * self.num_classes
        right = [(self.label == number)[self.truth == number].double() for number in range(self.num_classes)]
        return [float(part.mean()) if len(part) else None for part in right]

    @property
    def accuracy(self) -> float | None:
        return None if self.truth is None else float((self.label == self.truth)[self.truth >= 0].double().mean())

    def cells(self) -> tuple[str, ...]:
        recalls = [value for value in self.recall if value is not None]
        return (
            self.method,
            "-" if self.accuracy is None else f"{100 * self.accuracy:.1f}",
            f"{100 * min(recalls):.0f}" if recalls else "-",
            f"{100 * distance(self.counts, self.true_counts):.0f}",
            f"{few} of {self.num_classes}" if (few := almost_none(self.counts, self.true_counts)) else "-",
        )

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "counts": self.counts,
            "distance": distance(self.counts, self.true_counts),
            "distance_from": reference_name(self.true_counts),
            "almost_none": almost_none(self.counts, self.true_counts),
            "imbalance": ratio(self.counts),
        }
        if self.truth is not None:
            found |= {"accuracy": self.accuracy, "recall": self.recall, "evaluated": int((self.truth >= 0).sum())}
        return found


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

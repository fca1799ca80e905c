"""Which model the given labels support: the teacher, the student of only the labels, or the student of both.

Students are cross-validated: each label is predicted by a student that was not trained with it. The teacher was trained
with none of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from debiaspl._chance import LEVEL, at_least, wilson
from debiaspl.data import UNLABELED
from debiaspl.data.given import fold_of
from debiaspl.features.crosscheck import Candidate, choose, compared
from debiaspl.zeroshot.predictions import Predictions
from debiaspl.zeroshot.table import markdown

FOLDS = 3
ENOUGH_TO_TEST = 20
"""Smallest number of labels to test a teacher."""
HEADER = ("on labels that it did not learn from", "right", "of", "accuracy", "95 % interval")


@dataclass(frozen=True)
class LabelCheck:
    """What the given labels have shown, and which predictions and model are used."""

    rows: tuple[Candidate, ...]
    chosen: str
    why: str

    @property
    def cells(self) -> Sequence[tuple[str, ...]]:
        """The lines of a table."""
        lines = []
        for row in self.rows:
            low, high = wilson(row.right, row.checked)
            shares = f"{100 * row.right / max(row.checked, 1):.1f}", f"{100 * low:.0f} to {100 * high:.0f}"
            lines.append((row.name, f"{row.right}", f"{row.checked}", *(shares if row.checked else ("-", "-"))))
        return lines

    def to_json(self) -> dict[str, Any]:
        """The selected model, and the evidence for it."""
        checked = {"labels": self.rows[0].checked, "right": {row.name: row.right for row in self.rows}}
        return {"handed out": self.chosen, "why": self.why, "checked": checked}

    def to_markdown(self) -> str:
        return f"{markdown(HEADER, self.cells)}\n{self.why}.\n"


def check_with_labels(
    students: Mapping[str, Callable[[int, Tensor], Tensor]], predictions: Predictions, labels: Tensor, seed: int
) -> LabelCheck:
    """How often the teacher and its students are right on labels that they were not trained with, and which is used.

    Args:
        students: by name, first that of only the labels, then the taught one. Each trains for a fold, with these
            labels, and returns its label of each image.
        predictions: the teacher's predictions.
        labels: labels from a person, one for each prediction, -1 for none.
        seed: of the folds.
    """
    predicted = {f"{predictions.teacher} alone": predictions.label}
    predicted |= {name: cross_predicted(labels, seed, trained) for name, trained in students.items()}
    checked = (list(predicted.values())[-1] >= 0).nonzero().flatten()
    rows = [
        compared(name, label, labels, checked, len(predictions.classes), predictions.ids)
        for name, label in predicted.items()
    ]
    teacher, alone, taught = rows
    clear = is_clear(predictions.label, labels, len(predictions.classes))
    return LabelCheck(tuple(rows), *decide(teacher, alone, taught, clear))


def cross_predicted(labels: Tensor, seed: int, trained: Callable[[int, Tensor], Tensor]) -> Tensor:
    """The label of each image by a student that was not trained with it, (N,); -1 if none was held out, as the only
    label of a class."""
    counts = torch.bincount(labels[labels >= 0])
    several = int(counts[counts > 1].sum())
    predicted = torch.full_like(labels, UNLABELED)
    if several > 1:
        fold = fold_of(labels, min(FOLDS, several), seed)
        for number in range(int(fold.max()) + 1):
            held_out = fold == number
            predicted[held_out] = trained(number, labels.masked_fill(held_out, UNLABELED))[held_out]
    return predicted


def decide(teacher: Candidate, alone: Candidate, taught: Candidate, clear: bool) -> tuple[str, str]:
    """The name of the model that the labels support, and why.

    The student of only the labels, if the teacher is not ``clear``, that is, clearly above chance, or if the teacher or
    the taught student is right less often than it (results/zeroshot/verdict.json); otherwise the taught student. Unless
    another model, such as the teacher itself, is significantly better (McNemar's exact test).
    """
    if not clear:
        reason = f"{teacher.name} is not clearly above chance on the labels"
    elif teacher.right < alone.right:
        reason = f"{teacher.name} is right less often than the student without it"
    elif taught.right < alone.right:
        reason = f"it is right more often than {taught.name!r}"
    else:
        reason = "it and its teacher are right at least as often as the student without a teacher"
        alone, taught = taught, alone
    others = [teacher, taught]
    chosen = choose([*others, alone])
    labels = f"{alone.checked} label{'' if alone.checked == 1 else 's'}"
    if chosen is not alone:
        return chosen.name, f"it is significantly better than {alone.name!r} on {labels}"
    return chosen.name, f"no other model is significantly better on {labels}, and {reason}"


def is_clear(label: Tensor, truth: Tensor, classes: int) -> bool:
    """Whether predictions are right more often than random guesses, and than always predicting the largest class."""
    right, total, best = _against(label, truth, classes)
    return total > 0 and at_least(right, total, best) <= LEVEL


def against_labels(name: str, label: Tensor, truth: Tensor, classes: int) -> str:
    """One line for the user: how often the teacher is right on true labels (-1: not known), and whether that is better
    than chance."""
    right, total, best = _against(label, truth, classes)
    if not total:
        return f"{name} cannot be tested: no photo that has a label can be read."
    low, high = wilson(right, total)
    line = (
        f"{name} is right on {right} of {total:,} true labels ({100 * right / total:.0f} %, 95 % interval "
        f"{100 * low:.0f} to {100 * high:.0f}). A random guess is right on {100 / classes:.0f} %, and always "
        f"predicting the largest class on {100 * _largest_share(truth):.0f} %"
    )
    if total < ENOUGH_TO_TEST:
        return f"{line}. A test needs {ENOUGH_TO_TEST} labels or more."
    better = at_least(right, total, best) <= LEVEL
    return f"{line}: {'clearly better than both.' if better else 'not clearly better, so do not rely on it.'}"


def _largest_share(truth: Tensor) -> float:
    known = truth[truth >= 0]
    return float(torch.bincount(known).max()) / len(known)


def _against(label: Tensor, truth: Tensor, classes: int) -> tuple[int, int, float]:
    """Number of correct predictions, the total, and the accuracy without using the photos."""
    known = truth >= 0
    total = int(known.sum())
    best = max(1 / classes, _largest_share(truth)) if total else 1.0
    return int((label == truth)[known].sum()), total, best

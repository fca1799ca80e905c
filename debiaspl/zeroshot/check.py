"""Which model the given labels support: the teacher, the student of only the labels, or the student of both.

Students are cross-validated: each label is predicted by a student that was not trained with it. The teacher was trained
with none of them.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from debiaspl.features.chance import LEVEL, at_least, mcnemar, wilson
from debiaspl.zeroshot.table import markdown

TOLD_APART = 0.05
"""Two models are considered different if chance would show such a difference less often than this."""
ENOUGH_TO_TEST = 20
"""Smallest number of labels to test a teacher."""
HEADER = ("on labels that it did not learn from", "right", "of", "accuracy", "95 % interval")


@dataclass(frozen=True, eq=False)
class CheckedMethod:
    """One model, and which of the checked labels it predicts correctly; the same images for all models."""

    method: str
    right: Tensor
    """bool, (K,)."""

    def cells(self) -> tuple[str, ...]:
        count, total = int(self.right.sum()), len(self.right)
        if not total:
            return self.method, "-", "0", "-", "-"
        low, high = wilson(count, total)
        return self.method, f"{count}", f"{total}", f"{100 * count / total:.1f}", f"{100 * low:.0f} to {100 * high:.0f}"


@dataclass(frozen=True)
class Decision:
    """Which predictions and model are selected, and why, in one sentence."""

    method: str
    why: str


@dataclass(frozen=True)
class LabelCheck:
    """Everything that the given labels have shown."""

    rows: tuple[CheckedMethod, ...]
    decision: Decision

    def to_json(self) -> dict[str, Any]:
        """The selected model, and the evidence for it."""
        right = {row.method: int(row.right.sum()) for row in self.rows}
        checked = {"labels": len(self.rows[0].right), "right": right}
        return {"handed out": self.decision.method, "why": self.decision.why, "checked": checked}

    def to_markdown(self) -> str:
        return f"{markdown(HEADER, [row.cells() for row in self.rows])}\n{self.decision.why}.\n"


def decide(teacher: CheckedMethod, alone: CheckedMethod, taught: CheckedMethod, clear: bool) -> Decision:
    """Select the model that the labels support.

    Of the two students, the better one if a paired test (McNemar, exact) finds a difference. If not: the student of
    only the labels, if the teacher is not ``clear``, that is, clearly above chance, or if it is right less often than
    that student, which then has little to learn from it (results/zeroshot/verdict.json); otherwise the one that is
    right more often.

    The teacher itself is selected only if it differs from that student: students in the check were trained with two
    thirds of the labels, and the selected one with all of them.
    """
    more, less = _apart(taught, alone)
    sure = mcnemar(more, less) <= TOLD_APART if more + less else False
    if sure:
        student, other = (taught, alone) if more > less else (alone, taught)
        why = f"it is right more often than {other.method!r} on {_of(alone)}"
    elif not clear:
        student = alone
        why = (
            f"{_of(alone)} finds no significant difference between the two students, and {teacher.method} is not "
            "clearly above chance on the labels, so the student without it is selected"
        )
    elif int(teacher.right.sum()) < int(alone.right.sum()):
        student = alone
        why = (
            f"{_of(alone)} finds no significant difference between the two students, and {teacher.method} is right "
            "less often than the student without it, so that one is selected"
        )
    else:
        student = taught if more >= less else alone
        why = (
            f"{_of(alone)} finds no significant difference between the two students; {teacher.method} is right at "
            "least as often as the student without it, so the student that is right more often is selected, in a tie "
            "the one with the teacher"
        )
    more, less = _apart(teacher, student)
    if more > less and mcnemar(more, less) <= TOLD_APART:
        return Decision(teacher.method, f"it is right more often than {student.method!r} on {_of(alone)}")
    return Decision(student.method, why)


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
    chance, largest = 1 / classes, best_share(truth)
    found = (
        f"{name} is right on {right} of {total:,} true labels ({100 * right / total:.0f} %, 95 % interval "
        f"{100 * low:.0f} to {100 * high:.0f}). A random guess is right on {100 * chance:.0f} %, and always predicting "
        f"the largest class on {100 * largest:.0f} %"
    )
    if total < ENOUGH_TO_TEST:
        return f"{found}. A test needs {ENOUGH_TO_TEST} labels or more."
    odds = at_least(right, total, best)
    if odds <= LEVEL:
        return f"{found}: clearly better than both."
    return f"{found}: not clearly better, so do not rely on it."


def best_share(truth: Tensor) -> float:
    """The share of the largest class among the known labels."""
    known = truth[truth >= 0]
    return float(torch.bincount(known).max()) / len(known)


def _against(label: Tensor, truth: Tensor, classes: int) -> tuple[int, int, float]:
    """Number of correct predictions, the total, and the accuracy without using the photos."""
    known = truth >= 0
    total = int(known.sum())
    return int((label == truth)[known].sum()), total, max(1 / classes, best_share(truth)) if total else 1.0


def _apart(one: CheckedMethod, other: CheckedMethod) -> tuple[int, int]:
    """Number of labels that only the first predicts correctly, and that only the second does."""
    return int((one.right & ~other.right).sum()), int((other.right & ~one.right).sum())


def _of(checked: CheckedMethod) -> str:
    total = len(checked.right)
    return f"a check with {total} label{'' if total == 1 else 's'}" if total else "a check without labels"

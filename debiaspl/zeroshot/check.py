"""Which model the given labels support: the teacher, the student of the labels alone, or the student of both.

Students are cross-checked: each label is predicted by a student that did not learn from it. The teacher has learned
from none of them.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from debiaspl.report.chance import LEVEL, at_least, either_way, wilson
from debiaspl.zeroshot.table import markdown

TOLD_APART = 0.05
"""Two models differ where chance alone would show as much less often than this."""
ENOUGH_TO_TEST = 20
"""Labels from which on a teacher is tested with them."""
HEADER = ("on labels that it did not learn from", "right", "of", "accuracy", "95 % interval")


@dataclass(frozen=True, eq=False)
class CheckedMethod:
    """One model, and which of the checked labels it predicts right. Of all models, for the same images."""

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
    """Whose predictions and model are handed out, and why, in one sentence."""

    method: str
    why: str


@dataclass(frozen=True)
class LabelCheck:
    """All that the given labels have shown."""

    rows: tuple[CheckedMethod, ...]
    decision: Decision

    def to_json(self) -> dict[str, Any]:
        """Whose predictions are handed out, and by which evidence."""
        right = {row.method: int(row.right.sum()) for row in self.rows}
        checked = {"labels": len(self.rows[0].right), "right": right}
        return {"handed out": self.decision.method, "why": self.decision.why, "checked": checked}

    def to_markdown(self) -> str:
        return f"{markdown(HEADER, [row.cells() for row in self.rows])}\n{self.decision.why}.\n"


def decide(teacher: CheckedMethod, alone: CheckedMethod, taught: CheckedMethod, clear: bool) -> Decision:
    """What the labels support.

    Of the two students, the better one where a paired test (McNemar, exact) tells them apart. Where it does not: the
    student of the labels alone if the teacher is not ``clear``, that is, clearly above chance, or if it is right less
    often than that student, which then has little to learn from it (results/zeroshot/verdict.json); else the one that
    is right more often.

    The teacher itself is handed out only where it is told apart from that student: students that are checked have
    learned from two thirds of the labels, and the one that is handed out from all of them.
    """
    more, less = _apart(taught, alone)
    sure = either_way(more, less) <= TOLD_APART if more + less else False
    if sure:
        student, other = (taught, alone) if more > less else (alone, taught)
        why = f"it is right more often than {other.method!r} on {_of(alone)}"
    elif not clear:
        student = alone
        why = (
            f"{_of(alone)} cannot tell the two students apart, and {teacher.method} is not clearly above chance on "
            "the labels, so the student without it is taken"
        )
    elif int(teacher.right.sum()) < int(alone.right.sum()):
        student = alone
        why = (
            f"{_of(alone)} cannot tell the two students apart, and {teacher.method} is right less often than the "
            "student without it, which is taken"
        )
    else:
        student = taught if more >= less else alone
        why = (
            f"{_of(alone)} cannot tell the two students apart; {teacher.method} is right at least as often as the "
            "student without it, so the student that is right more often is taken, with the teacher in a tie"
        )
    more, less = _apart(teacher, student)
    if more > less and either_way(more, less) <= TOLD_APART:
        return Decision(teacher.method, f"it is right more often than {student.method!r} on {_of(alone)}")
    return Decision(student.method, why)


def is_clear(label: Tensor, truth: Tensor, classes: int) -> bool:
    """Whether predictions are right more often than a guess, and than the largest class for every image, would be."""
    right, total, best = _against(label, truth, classes)
    return total > 0 and at_least(right, total, best) <= LEVEL


def against_labels(name: str, label: Tensor, truth: Tensor, classes: int) -> str:
    """One line for the user: how often the teacher is right on true labels (-1: not known), and whether that is
    anything."""
    right, total, best = _against(label, truth, classes)
    if not total:
        return f"{name} cannot be tested: no photo that has a label can be read."
    low, high = wilson(right, total)
    chance, largest = 1 / classes, best_share(truth)
    found = (
        f"{name} is right on {right} of {total:,} true labels ({100 * right / total:.0f} %, 95 % interval "
        f"{100 * low:.0f} to {100 * high:.0f}). A guess would be right on {100 * chance:.0f} %, and the largest class "
        f"for every photo on {100 * largest:.0f} %"
    )
    if total < ENOUGH_TO_TEST:
        return f"{found}. {ENOUGH_TO_TEST} labels or more would be a test."
    odds = at_least(right, total, best)
    if odds <= LEVEL:
        return f"{found}: clearly better than both."
    return f"{found}: not clearly better, so do not rely on it."


def best_share(truth: Tensor) -> float:
    """The share of the largest class among the known labels."""
    known = truth[truth >= 0]
    return float(torch.bincount(known).max()) / len(known)


def _against(label: Tensor, truth: Tensor, classes: int) -> tuple[int, int, float]:
    """Right, of how many, and what is right without looking at the photos."""
    known = truth >= 0
    total = int(known.sum())
    return int((label == truth)[known].sum()), total, max(1 / classes, best_share(truth)) if total else 1.0


def _apart(one: CheckedMethod, other: CheckedMethod) -> tuple[int, int]:
    """Labels that only the first predicts right, and those that only the second does."""
    return int((one.right & ~other.right).sum()), int((other.right & ~one.right).sum())


def _of(checked: CheckedMethod) -> str:
    total = len(checked.right)
    return f"a check with {total} label{'' if total == 1 else 's'}" if total else "a check without labels"

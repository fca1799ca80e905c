"""Which model is handed out.

Without labels the student, unless its teacher is at chance or predicts classes that it has lost. With labels the one
that they support: the teacher, the student of only the labels, or the student of both. Students are cross-validated:
each label is predicted by a student that was not trained with it. The teacher was trained with none of them.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from debiaspl._measures import LEVEL, at_least, wilson
from debiaspl.features.crosscheck import Candidate, choose, compared
from debiaspl.zeroshot.predictions import Predictions, lost_classes, markdown

ENOUGH_TO_TEST = 20
"""Smallest number of labels to test a teacher."""


@dataclass(frozen=True)
class HandedOut:
    """Which predictions and model are used, and why."""

    chosen: str
    why: str
    rows: tuple[Candidate, ...] = ()
    """What the given labels have shown."""

    def to_json(self) -> dict[str, Any]:
        """The selected model, and the evidence for it."""
        right = {row.name: row.right for row in self.rows}
        checked = {"checked": {"labels": self.rows[0].checked, "right": right}} if right else {}
        return {"handed out": self.chosen, "why": self.why} | checked

    def to_markdown(self) -> str:
        shown = ""
        if self.rows:
            table = markdown(self.rows[0].header, [row.cells for row in self.rows])
            shown = f"On labels that they did not learn from:\n\n{table}\n"
        return f"{shown}Used: {self.chosen}, because {self.why}.\n"


def check_without_labels(predictions: Predictions, student: str, label: Tensor, at_chance: bool) -> HandedOut:
    """The student, whose labels these are, unless its teacher is at chance or predicts classes that it has lost."""
    teacher = f"{predictions.teacher} alone"
    if at_chance:
        # A student of random labels is right on the clusters that happen to get a right one: on EuroSAT with ConSE
        # between 5 points below its teacher and 15 above, by the draw (results/zeroshot/students.json).
        return HandedOut(teacher, "it is at chance on these photos, so nothing can be learned from it")
    lost = lost_classes(label, predictions.label, len(predictions.classes))
    if lost:
        names = ", ".join(predictions.classes[number] for number in lost)
        return HandedOut(teacher, f"{student} has lost classes that it predicts: {names}")
    return HandedOut(student, f"it has lost no class that {predictions.teacher} predicts")


def check_with_labels(predictions: Predictions, labels: Tensor, alone: Candidate, taught: Candidate) -> HandedOut:
    """Who is used, where a person gave ``labels``: one for each of the teacher's predictions, -1 for none. Its two
    students were cross-checked with them."""
    files = alone.right_files | {file for file, *_ in alone.mistakes}
    checked = torch.tensor([row for row, name in enumerate(predictions.ids) if name in files], dtype=torch.int64)
    name, classes = f"{predictions.teacher} alone", len(predictions.classes)
    teacher = compared(name, predictions.label, labels, checked, classes, predictions.ids)
    clear = is_clear(predictions.label, labels, classes)
    return HandedOut(*decide(teacher, alone, taught, clear), (teacher, alone, taught))


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
    chosen = choose([teacher, taught, alone])
    labels = f"{alone.checked} label{'' if alone.checked == 1 else 's'}"
    if chosen is not alone:
        return chosen.name, f"it is significantly better than {alone.name!r} on {labels}"
    return chosen.name, f"no other model is significantly better on {labels}, and {reason}"


def is_clear(label: Tensor, truth: Tensor, classes: int) -> bool:
    """Whether predictions are right more often than random guesses, and than always predicting the largest class."""
    right, total, largest = _against(label, truth)
    return total > 0 and at_least(right, total, max(1 / classes, largest)) <= LEVEL


def against_labels(name: str, label: Tensor, truth: Tensor, classes: int) -> str:
    """One line: how often the teacher is right on true labels (-1: not known), and whether that is above chance."""
    right, total, largest = _against(label, truth)
    if not total:
        return f"{name} cannot be tested: no photo that has a label can be read."
    low, high = wilson(right, total)
    line = (
        f"{name} is right on {right} of {total:,} true labels ({100 * right / total:.0f} %, 95 % interval "
        f"{100 * low:.0f} to {100 * high:.0f}). A random guess is right on {100 / classes:.0f} %, and always "
        f"predicting the largest class on {100 * largest:.0f} %"
    )
    if total < ENOUGH_TO_TEST:
        return f"{line}. A test needs {ENOUGH_TO_TEST} labels or more."
    better = is_clear(label, truth, classes)
    return f"{line}: {'clearly better than both.' if better else 'not clearly better, so do not rely on it.'}"


def _against(label: Tensor, truth: Tensor) -> tuple[int, int, float]:
    """Number of correct predictions, the total, and the share of the largest class."""
    known = truth[truth >= 0]
    largest = float(torch.bincount(known).max()) / len(known) if len(known) else 0.0
    return int((label == truth)[truth >= 0].sum()), len(known), largest

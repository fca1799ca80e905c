"""Labels of a person, and which model is handed out: without labels the student, unless its teacher is at chance or
predicts classes that it has lost; with labels the one that they support, by predictions of labels that it did not learn
from: the teacher, the student of only the labels, or the student of both.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl._measures import LEVEL, Cells, at_least
from debiaspl._over_seeds import markdown
from debiaspl.data import UNLABELED, DataError
from debiaspl.data.label_table import Columns
from debiaspl.data.listing import list_folder
from debiaspl.data.text import shown
from debiaspl.features.crosscheck import Candidate, choose, compared
from debiaspl.zeroshot.predictions import Predictions, lost_classes

ENOUGH_TO_TEST = 20
"""Smallest number of labels to test a teacher."""


@dataclass(frozen=True)
class GivenTable:
    """A table of labels for some of the photos: a few to learn from, or true ones for the final table."""

    table: Path
    labels: dict[str, int]
    """File -> class number, for the files that the table names and the folder contains."""
    absent: tuple[str, ...]
    """Files that the table names but the folder does not contain."""

    @classmethod
    def read(
        cls, table: Path, root: Path, classes: Sequence[str], columns: Columns, learned: Container[str] | None = None
    ) -> "GivenTable":
        """Labels to learn from; or true ones, of photos that are not ``learned`` from. These may name files of a larger
        folder too."""
        listing = list_folder(root, table, classes, learned is not None, columns)
        given = zip(listing.files, listing.labels.tolist(), strict=True)
        labels = {file: label for file, label in given if label != UNLABELED and file not in (learned or ())}
        found, least = [classes[label] for label in set(labels.values())], 2 if learned is None else 1
        if len(found) < least:
            beside = " of photos without one in --labels" if learned else ""
            kinds = f"{shown(found) or 'no class'}{beside}"
            raise DataError(f"{table} has labels of {kinds}, expected {least} or more classes.")
        return cls(table, labels, listing.absent)

    def of(self, ids: Sequence[str]) -> Tensor:
        """A label for each image, -1 for none."""
        return torch.tensor([self.labels.get(name, UNLABELED) for name in ids], dtype=torch.int64)

    def notes(self, bad: Container[str]) -> list[str]:
        """What to know about files that are not in the folder, as a wrong path must be noticed, and about those that
        cannot be read, ``bad``. Raises if none is left."""
        names, total = [name for name in self.labels if name in bad], len(self.labels)
        unread = f"{len(names):,} of {total:,} images that {self.table} names cannot be read: {shown(names)}."
        if len(names) == total:
            raise DataError(unread)
        absent = f"{len(self.absent):,} files that {self.table} names are not in the folder: {shown(self.absent)}."
        return [*([absent] if self.absent else []), *([unread] if names else [])]


@dataclass(frozen=True)
class HandedOut:
    """Which predictions and model are used, and why."""

    chosen: str
    why: str
    rows: tuple[Candidate, ...] = ()
    """What the given labels have shown."""

    def to_json(self) -> dict[str, Any]:
        right = {row.name: row.right for row in self.rows}
        checked = {"checked": {"labels": self.rows[0].checked, "right": right}} if right else {}
        return {"handed out": self.chosen, "why": self.why} | checked

    def to_markdown(self) -> str:
        table = ""
        if self.rows:
            cells = markdown([self.rows[0].header, *(row.cells for row in self.rows)])
            table = f"On labels that they did not learn from:\n\n{cells}\n"
        return f"{table}Used: {self.chosen}, because {self.why}.\n"


def check_without_labels(predictions: Predictions, student: str, label: Tensor, at_chance: bool) -> HandedOut:
    """The student, whose labels these are, unless its teacher is at chance or predicts classes that it has lost."""
    teacher = f"{predictions.teacher} alone"
    if at_chance:
        # A student of random labels is right on the clusters that happen to get a right one: on EuroSAT with ConSE
        # between 5 points below its teacher and 15 above, by the draw (results/zeroshot/students.json).
        return HandedOut(teacher, "it is at chance on these photos, so nothing can be learned from it")
    if lost := lost_classes(label, predictions):
        return HandedOut(teacher, f"{student} has lost classes that it predicts: {', '.join(lost)}")
    return HandedOut(student, f"it has lost no class that {predictions.teacher} predicts")


def check_with_labels(predictions: Predictions, labels: Tensor, alone: Candidate, taught: Candidate) -> HandedOut:
    """Who is used, where a person gave ``labels``: one for each of the teacher's predictions, -1 for none. Its two
    students were cross-checked with them."""
    files = alone.right_files | {file for file, *_ in alone.mistakes}
    checked = torch.tensor([row for row, name in enumerate(predictions.ids) if name in files], dtype=torch.int64)
    name, classes = f"{predictions.teacher} alone", len(predictions.classes)
    teacher = compared(name, predictions.label, labels, checked, classes, predictions.ids)
    clear = is_clear(Cells.of(labels, predictions.label, classes))
    return HandedOut(*decide(teacher, alone, taught, clear), (teacher, alone, taught) if alone.checked else ())


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
    if chosen is not alone:
        return chosen.name, f"it is significantly better than {alone.name!r} on {alone.checked} labels"
    return chosen.name, f"no other model is significantly better on {alone.checked} labels, and {reason}"


def is_clear(found: Cells) -> bool:
    """Whether predictions are right more often than random guesses, and than always predicting the largest class."""
    least = max(1 / found.classes, _largest_share(found))
    return found.images > 0 and at_least(int(found.right.sum()), found.images, least) <= LEVEL


def against_labels(name: str, found: Cells) -> str:
    """One line: how often the teacher is right on true labels, and whether that is above chance."""
    if not found.images:
        return f"{name} cannot be tested: no photo that has a label can be read."
    low, high = found.interval
    line = (
        f"{name} is right on {found.right.sum()} of {found.images:,} true labels ({100 * found.accuracy:.0f} %, 95 % "
        f"interval {100 * low:.0f} to {100 * high:.0f}). A random guess is right on {100 / found.classes:.0f} %, and "
        f"always predicting the largest class on {100 * _largest_share(found):.0f} %"
    )
    if found.images < ENOUGH_TO_TEST:
        return f"{line}. A test needs {ENOUGH_TO_TEST} labels or more."
    return f"{line}: {'clearly better than both.' if is_clear(found) else 'not clearly better: do not rely on it.'}"


def _largest_share(found: Cells) -> float:
    return float(found.of_true.max()) / max(found.images, 1)

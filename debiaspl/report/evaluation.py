"""The accuracy of a model on photos of known classes, as a table and as JSON."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl._chance import wilson
from debiaspl.data import UNLABELED, DataError
from debiaspl.data.listing import list_folder
from debiaspl.data.table_form import USUAL, Columns
from debiaspl.deploy.labeled import trained_with
from debiaspl.deploy.saved import SavedModel
from debiaspl.report.confusion import Cells

HEADER = ("class", "right", "of", "recall", "95 % interval", "most often mistaken for")
MOST_PAIRS = 5
"""How many kinds of mistakes are named below the table."""


@dataclass(frozen=True, eq=False)
class FolderEvaluation:
    """Predictions of a model on photos with a known class."""

    classes: tuple[str, ...]
    confusion: NDArray[np.int64]
    """Rows: true class. Columns: predicted class."""
    without_label: int
    """Photos of the folder whose class is not known."""
    trained_with: int | None
    """Photos with a known class that were left out because the run was trained with them; None: it is not known which
    these are, and none was left out."""
    absent: int
    """Photos of the table that do not exist."""
    bad: dict[str, str]
    """Photos that could not be read -> why."""

    @property
    def cells(self) -> Cells:
        return Cells.of_dense(self.confusion.tolist())

    @property
    def images(self) -> int:
        return int(self.confusion.sum())

    @property
    def right(self) -> int:
        return int(np.trace(self.confusion))

    @property
    def accuracy(self) -> float:
        return self.right / self.images

    @property
    def recall(self) -> dict[str, float]:
        """Of each class that has photos: the share of them that were recognised."""
        totals = self.confusion.sum(1)
        return {
            name: float(self.confusion[place, place] / totals[place])
            for place, name in enumerate(self.classes)
            if totals[place]
        }

    @property
    def macro_recall(self) -> float:
        """The mean over classes: a rare class counts as much as a frequent one."""
        return float(np.mean(list(self.recall.values())))

    @property
    def worst(self) -> str:
        return min(self.recall, key=self.recall.__getitem__)

    def pairs(self) -> list[tuple[str, str, int]]:
        """True class, predicted class and how often, the most frequent mistake first."""
        wrong = self.cells.mistakes()
        found = zip(wrong.true.tolist(), wrong.predicted.tolist(), wrong.count.tolist(), strict=True)
        return [(self.classes[true], self.classes[taken], count) for true, taken, count in found]

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each class, in the order of the classes."""
        first: dict[str, str] = {}
        for true, taken, count in self.pairs():
            first.setdefault(true, f"{taken} ({count:,})")
        made: list[tuple[str, ...]] = []
        for place, name in enumerate(self.classes):
            right, total = int(self.confusion[place, place]), int(self.confusion[place].sum())
            low, high = wilson(right, total)
            numbers = (
                ("-", "-") if not total else (f"{100 * right / total:.0f} %", f"{100 * low:.0f} to {100 * high:.0f} %")
            )
            made.append((name, f"{right:,}", f"{total:,}", *numbers, first.get(name, "")))
        return made

    def lines(self) -> list[str]:
        """Sentences with the numbers that are not in the table."""
        low, high = wilson(self.right, self.images)
        worst = self.classes.index(self.worst)
        right, total = int(self.confusion[worst, worst]), int(self.confusion[worst].sum())
        said = [
            f"accuracy {100 * self.accuracy:.1f} % ({self.right:,} of {self.images:,}; 95 % interval {100 * low:.1f} "
            f"to {100 * high:.1f} %), macro recall {100 * self.macro_recall:.1f} %",
            f"worst class: {self.worst}, {right:,} of {total:,}",
        ]
        pairs = [f"{true} mistaken for {taken} ({count:,})" for true, taken, count in self.pairs()[:MOST_PAIRS]]
        return [*said, f"most frequent mistakes: {'; '.join(pairs)}"] if pairs else said

    def to_json(self) -> dict[str, Any]:
        totals, taken = self.confusion.sum(1).tolist(), self.confusion.sum(0).tolist()
        return {
            "images": self.images,
            "right": self.right,
            "accuracy": self.accuracy,
            "interval": list(wilson(self.right, self.images)),
            "macro_recall": self.macro_recall,
            "worst_class": self.worst,
            "classes": {
                name: {
                    "right": int(self.confusion[place, place]),
                    "images": totals[place],
                    "predicted": taken[place],
                    "recall": self.recall.get(name),
                }
                for place, name in enumerate(self.classes)
            },
            "confusion": self.confusion.tolist(),
            "mistakes": [{"true": true, "predicted": taken, "images": count} for true, taken, count in self.pairs()],
            "without_label": self.without_label,
            "trained_with_left_out": self.trained_with,
            "absent": self.absent,
            "unreadable": self.bad,
        }


def evaluate_folder(
    model: SavedModel,
    run: Path,
    photos: Path,
    table: Path | None = None,
    columns: Columns = USUAL,
    every: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> FolderEvaluation:
    """Compare the model of a run with the true classes of a folder: those of a table, or of class folders.

    Photos that the run was trained with are left out, as far as they are known, unless ``every`` is true.
    """
    listing = list_folder(photos, table, model.classes, allow_absent=True, columns=columns)
    truth = {
        file: label for file, label in zip(listing.files, listing.labels.tolist(), strict=True) if label != UNLABELED
    }
    learned = set() if every else trained_with(run, photos, listing.files)
    seen_before = None if learned is None else learned & set(truth)
    files = [file for file in truth if file not in (seen_before or ())]
    if not files:
        raise DataError(_nothing(photos, len(truth)))
    confusion = np.zeros((len(model.classes), len(model.classes)), np.int64)
    bad: dict[str, str] = {}
    done = 0
    for seen in model.see(model.photos(listing.root, files)):
        labels: Iterable[int] = seen.probabilities.argmax(-1).tolist()
        for position, label in zip(seen.positions.tolist(), labels, strict=True):
            confusion[truth[files[position]], label] += 1
        bad |= {files[position]: reason for position, reason in seen.skipped.items()}
        done += len(seen.positions) + len(seen.skipped)
        progress(done, len(files))
    if not confusion.any():
        raise DataError(f"none of {len(files):,} photos of {photos} with a true class can be read.")
    without_label = len(listing.files) - len(truth)
    left_out = None if seen_before is None else len(seen_before)
    return FolderEvaluation(model.classes, confusion, without_label, left_out, len(listing.absent), bad)


def _nothing(photos: Path, known: int) -> str:
    if known:
        return (
            f"the run was trained with all {known:,} photos of {photos} whose class is known, so they say nothing "
            "about other photos. Use labeled photos that it has not seen, or count these anyway: --every."
        )
    return (
        f"no photo of {photos} has a known class. Expected a table with the true classes, --labels truth.csv, or a "
        "folder for each class."
    )

"""The accuracy of a model on photos of known classes, as a table and as JSON."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from debiaspl._measures import Cells, wilson
from debiaspl._printable import percent
from debiaspl.data import UNLABELED, DataError
from debiaspl.data.label_table import USUAL, Columns
from debiaspl.data.listing import list_folder
from debiaspl.deploy.labeled import trained_with
from debiaspl.deploy.saved import SavedModel
from debiaspl.features.shares import PHOTOS

HEADER = ("class", "right", "of", "recall", "95 % interval", "most often mistaken for")
MANY, WORST = 40, 20
"""Of more classes than the first number the table has so many."""
MOST_PAIRS = 5
"""How many kinds of mistakes are named below the table."""


@dataclass(frozen=True, eq=False)
class FolderEvaluation:
    """Predictions of a model on photos with a known class."""

    classes: tuple[str, ...]
    cells: Cells
    """True and predicted classes."""
    without_label: int
    """Photos of the folder whose class is not known."""
    trained_with: int | None
    """Photos that were left out because the run was trained with them; None: it is not known which these are."""
    absent: int
    """Photos of the table that do not exist."""
    bad: dict[str, str]
    """Photos that could not be read -> why."""
    optimise: str = PHOTOS
    """What the model was chosen for, which is said first."""

    def to_json(self) -> dict[str, Any]:
        cells = self.cells
        counts = {"right": cells.right, "images": cells.of_true, "predicted": cells.of_predicted}
        columns = {name: count.tolist() for name, count in counts.items()} | {"recall": cells.recall}
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        recall = {name: share for name, share in zip(self.classes, cells.recall, strict=True) if share is not None}
        return {
            "images": cells.images,
            "right": int(cells.right.sum()),
            "accuracy": cells.accuracy,
            "interval": list(cells.interval),
            "macro_recall": sum(recall.values()) / len(recall),  # a rare class counts as much as a frequent one
            "worst_class": min(recall, key=recall.__getitem__),
            "classes": dict(zip(self.classes, rows, strict=True)),
            "confusion": cells.to_json(),
            "mistakes": [{"true": true, "predicted": taken, "images": count} for true, taken, count in self.pairs()],
            "without_label": self.without_label,
            "trained_with_left_out": self.trained_with,
            "absent": self.absent,
            "unreadable": self.bad,
        }

    def pairs(self) -> list[tuple[str, str, int]]:
        """True class, predicted class and how often, the most frequent mistake first."""
        wrong = self.cells.mistakes()
        rows = zip(wrong.true.tolist(), wrong.predicted.tolist(), wrong.count.tolist(), strict=True)
        return [(self.classes[true], self.classes[taken], count) for true, taken, count in rows]

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each class, in the order of the classes; of many, the ones that are recognised least."""
        taken = self.cells.taken_for().items()
        first = {self.classes[true]: f"{self.classes[other]} ({count:,})" for true, (other, count) in taken}
        counts = list(zip(self.classes, self.cells.right.tolist(), self.cells.of_true.tolist(), strict=True))
        if len(counts) > MANY:
            counts = sorted((one for one in counts if one[2]), key=lambda one: one[1] / one[2])[:WORST]
        rows: list[tuple[str, ...]] = []
        for name, right, total in counts:
            low, high = wilson(right, total)
            shares = (f"{100 * right / total:.0f} %", f"{100 * low:.0f} to {100 * high:.0f} %") if total else ("-", "-")
            rows.append((name, f"{right:,}", f"{total:,}", *shares, first.get(name, "")))
        return rows

    def lines(self) -> list[str]:
        """Sentences with the numbers that are not in the table."""
        numbers = self.to_json()
        low, high = (100 * share for share in numbers["interval"])
        worst = numbers["classes"][numbers["worst_class"]]
        share = f"{numbers['right']:,} of {numbers['images']:,}; 95 % interval {low:.1f} to {high:.1f} %"
        accuracy = f"accuracy {percent(numbers['accuracy'], 1)} ({share})"
        macro = f"macro recall {percent(numbers['macro_recall'], 1)}"
        pairs = [f"{true} mistaken for {taken} ({count:,})" for true, taken, count in self.pairs()[:MOST_PAIRS]]
        return [
            f"{accuracy}, {macro}" if self.optimise == PHOTOS else f"{macro}, {accuracy}",
            f"worst class: {numbers['worst_class']}, {worst['right']:,} of {worst['images']:,}",
            *([f"most frequent mistakes: {'; '.join(pairs)}"] if pairs else []),
        ]


def evaluate_folder(
    model: SavedModel,
    run: Path,
    photos: Path,
    table: Path | None = None,
    columns: Columns = USUAL,
    every: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> FolderEvaluation:
    """Compare the model of a run with the true classes of a folder: those of a table, or of class folders. Photos that
    the run was trained with are left out, as far as they are known, unless ``every`` is true."""
    listing = list_folder(photos, table, model.classes, allow_absent=True, columns=columns)
    pairs = zip(listing.files, listing.labels.tolist(), strict=True)
    truth = {file: label for file, label in pairs if label != UNLABELED}
    if not truth:
        raise DataError(f"no photo of {photos} has a known class. Expected --labels truth.csv, or class folders.")
    learned = set() if every else trained_with(run, photos, listing.files)
    files = [file for file in truth if file not in (learned or ())]
    if not files:
        all_of = f"all {len(truth):,} photos of {photos} whose class is known"
        raise DataError(f"the run was trained with {all_of}. Use others, or count these anyway: --every.")
    known, predicted = np.array([truth[file] for file in files]), np.full(len(files), -1)
    bad: dict[str, str] = {}
    for seen in model.see(model.photos(listing.root, files)):
        predicted[seen.positions.numpy()] = seen.probabilities.argmax(-1).numpy()
        bad |= {files[position]: reason for position, reason in seen.skipped.items()}
        progress(int((predicted >= 0).sum()) + len(bad), len(files))
    read = predicted >= 0
    if not read.any():
        raise DataError(f"none of {len(files):,} photos of {photos} with a true class can be read.")
    return FolderEvaluation(
        model.classes,
        Cells.of(known[read], predicted[read], len(model.classes)),
        len(listing.files) - len(truth),
        None if learned is None else len(truth) - len(files),
        len(listing.absent),
        bad,
        PHOTOS if model.shares is None else model.shares.optimise,
    )

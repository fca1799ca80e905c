"""FixMatch beside a zero-shot model whose predictions lie in a table, by the names of the images."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.algorithms.taught import TaughtFixMatch
from debiaspl.debias import Correction


class TaughtByTable(TaughtFixMatch):
    """TaughtFixMatch, told by a CSV of ``file_name,label,confidence``, as ``debiaspl zeroshot`` and ``debiaspl
    predict`` write it.

    The table is read when a run is built, also to go on. Its labels are part of the run's state: one that goes on does
    so with those it began with, whatever the table says by then.

    Args:
        classes: names of the classes, in their order.
        unlabeled_ids: names of the unlabeled images, in their order.
        correction: what is done to the predictions before they become labels; nothing, if not given.
        table: path of the CSV; without one this is FixMatch.
        sure: confidence at which a label of the table is taken; the authors' scripts use 0.4.
        threshold: labels of the student less confident than this are not used (tau).
        unlabeled_weight: weight of the unlabeled loss (lambda_u).
        joint: weak views share the student's batch, and so its batch norm, with the others.
    """

    def __init__(
        self,
        classes: Sequence[str],
        unlabeled_ids: Sequence[str],
        correction: Correction | None = None,
        table: str = "",
        sure: float = 0.4,
        threshold: float = 0.95,
        unlabeled_weight: float = 1.0,
        joint: bool = True,
    ) -> None:
        if not 0 <= sure <= 1:
            raise ValueError(f"sure is {sure}, expected a confidence in [0, 1]; the authors' scripts use 0.4.")
        taught = torch.full((len(unlabeled_ids),), -1)
        if table:
            taught = read_taught(Path(table), classes, unlabeled_ids, sure)
        super().__init__(taught, correction, threshold, unlabeled_weight, joint)


def read_taught(table: Path, classes: Sequence[str], names: Sequence[str], sure: float) -> Tensor:
    """A class number for each of these images, (N,): -1 where the table does not name it, is not sure, or says a class
    that the run does not have, because nothing of it is labeled."""
    number, place = ({name: index for index, name in enumerate(every)} for every in (classes, names))
    rows = [row for row in _rows(table) if row[0] in place]
    if not any(label in number for _, label, _ in rows):
        found = f"such as {rows[0][1]!r}" if rows else f"and none of its images, such as {names[0] if names else '-'!r}"
        raise ValueError(
            f"{table} belongs to other images or classes: it says none of the classes of this run "
            f"({', '.join(classes[:5])}{', ...' if len(classes) > 5 else ''}), {found}. Name theirs: --set table=PATH."
        )
    taught = torch.full((len(names),), -1)
    for name, label, confidence in rows:
        taught[place[name]] = number.get(label, -1) if confidence >= sure else -1
    return taught


def _rows(table: Path) -> Iterator[tuple[str, str, float]]:
    try:
        text = table.read_bytes().decode("utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise ValueError(
            f"the table {table} cannot be read: {error.strerror}. Expected a CSV of file_name,label,confidence, as "
            "debiaspl zeroshot and debiaspl predict write it; name it with --set table=PATH."
        ) from error
    rows = csv.DictReader(io.StringIO(text, newline=""))
    wanted = ("file_name", "label", "confidence")
    if not set(wanted) <= set(rows.fieldnames or ()):
        found = ", ".join(rows.fieldnames or ()) or "none"
        raise ValueError(f"{table} has the columns {found}; expected {','.join(wanted)}.")
    for line, row in enumerate(rows, start=2):
        try:
            confidence = float(row["confidence"])
        except (TypeError, ValueError):
            confidence = -1.0
        if not 0 <= confidence <= 1:
            raise ValueError(f"{table}, line {line}, has the confidence {row['confidence']!r}, expected 0 to 1.")
        yield row["file_name"], row["label"], confidence

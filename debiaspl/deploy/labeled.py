"""Which photos have a label already: as a table says, or as the run was told. A zero-shot teacher's do not count."""

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

from debiaspl.data import UNLABELED, DataError
from debiaspl.data.class_names import UNLABELED_NAME, composed
from debiaspl.data.listing import list_folder, shown
from debiaspl.training import Recipe, Run, RunError

ZEROSHOT = ".zeroshot"
"""Marks the folder of a zero-shot experiment, in which labels.csv is what its students were told."""
TEACHER, PERSON = "teacher", "person"
"""Whose labels these are: the mark says it."""


def labeled_files(run: Path, photos: Path, files: Sequence[str], table: Path | None = None) -> set[str] | None:
    """Those of ``files`` that need no further label; None where nobody knows.

    ``table`` says it, or else what the run was trained with, if these are its photos, or else ``photos/labels.csv``.
    A table may name files that are gone. What a teacher has labeled nobody has looked at: it does not count.
    """
    if table is None:
        known, table = _of_run(run, photos), photos / "labels.csv"
        if not table.is_file() or known:
            return None if known is None else known & set(files)
    by_name = {composed(file.strip()): file for file in files}
    named = (by_name.get(composed(name.strip())) for name in _named(table))
    return {file for file in named if file is not None}


def learned_from_teacher(run: Path) -> bool:
    """Whether the labels that the run was given are those of a zero-shot model."""
    try:
        table = Path(str(_recipe(run).protocol.settings.get("table", "")))
    except RunError:
        return False
    if table.name != "labels.csv":
        return False
    # The folder may have been moved, and the table was named as somebody typed it, somewhere.
    mark = run.parent / ZEROSHOT
    mark = mark if mark.is_file() else table.with_name(ZEROSHOT)
    if not mark.is_file():
        return False
    try:
        told = json.loads(mark.read_text()).get("labels")
    except (OSError, ValueError, AttributeError):
        told = None
    # Experiments of earlier versions do not say it; where a person gave labels, they have a third student.
    return bool(told == TEACHER if told else not mark.with_name("taught").exists())


def _recipe(run: Path) -> Recipe:
    """Of the run, or, where a student of a zero-shot experiment has none of its own, of the student beside it."""
    alone = (run / "config.json").exists() or not (run.parent / ZEROSHOT).exists()
    return Run(run if alone else run.parent / "debiaspl").recipe()


def _of_run(run: Path, photos: Path) -> set[str] | None:
    """The labels that a person gave the run, if these are its photos and both are still where they were."""
    try:
        recipe = _recipe(run)
        if recipe.protocol.name != "given" or not os.path.samefile(Path(recipe.data).expanduser(), photos):
            return None
        if learned_from_teacher(run):
            return set()
        listing = list_folder(photos, recipe.protocol.settings.get("table") or None)
    except (RunError, DataError, OSError):
        return None
    labels = listing.labels.tolist()
    return {file for file, label in zip(listing.files, labels, strict=True) if label != UNLABELED}


def _named(table: Path) -> list[str]:
    """Files that the table has a label for."""
    try:
        text = table.read_bytes().decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))
    except OSError as error:
        raise DataError(f"{table} cannot be read: {error.strerror}. Expected a csv file of labels.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{table} cannot be read as a csv file in UTF-8: {error}.") from error
    header = [cell.strip().casefold() for cell in rows[0]] if rows else []
    if not {"file_name", "label"} <= set(header):
        found = f"has the columns {shown(header)}" if header else "is empty"
        raise DataError(f"{table} {found}. Expected a first line with file_name and label, separated by commas.")
    file_at, label_at = header.index("file_name"), header.index("label")
    cells = (row + [""] * (len(header) - len(row)) for row in rows[1:])
    return [row[file_at] for row in cells if row[label_at].strip() not in ("", UNLABELED_NAME)]

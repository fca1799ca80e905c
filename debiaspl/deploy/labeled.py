"""Which photos already have a label: from a table, or from the run. A zero-shot teacher's labels do not count."""

import os
from collections.abc import Sequence
from pathlib import Path

from debiaspl.data import UNLABELED, GivenLabels
from debiaspl.data.file_names import FileNames
from debiaspl.data.label_table import read_label_table, tell_assumed
from debiaspl.data.listing import list_folder
from debiaspl.data.table_form import USUAL, Columns
from debiaspl.files import parse_json
from debiaspl.training import Recipe, Run, RunError

ZEROSHOT = ".zeroshot"
"""Marks the folder of a zero-shot experiment, in which labels.csv contains its students' training labels."""
TEACHER, PERSON = "teacher", "person"
"""Values of the mark: who made the labels."""


def labeled_files(
    run: Path, photos: Path, files: Sequence[str], table: Path | None = None, columns: Columns = USUAL
) -> dict[str, str] | None:
    """Those of ``files`` that need no further label, with their class; None if that is not known.

    The labels come from ``table`` if given, otherwise from the run's training labels, if these are its photos,
    otherwise from ``photos/labels.csv``, which is also meant if ``columns`` are named. A table may name files that no
    longer exist. Labels of a teacher were not checked by a person and do not count.
    """
    beside = photos / "labels.csv"
    if table is None and columns == USUAL:
        known = labels_of_run(run, photos)
        if not beside.is_file() or known:
            return None if known is None else {file: known[file] for file in files if file in known}
    names = FileNames(photos, files)
    rows, assumed = read_label_table(table or beside, columns)
    tell_assumed(table or beside, assumed)
    labeled = {names.locate(row.name): row.label for row in rows if row.label is not None}
    return {file: labeled[file] for file in files if file in labeled}


def learned_from_teacher(run: Path) -> bool:
    """Whether the run was trained with the labels of a zero-shot model."""
    try:
        table = Path(str(recipe_of(run).protocol.settings.get("table", "")))
    except RunError:
        return False
    if table.name != "labels.csv":
        return False
    # The folder may have been moved, and the table's path may be relative to another folder.
    mark = run.parent / ZEROSHOT
    mark = mark if mark.is_file() else table.with_name(ZEROSHOT)
    if not mark.is_file():
        return False
    try:
        told = parse_json(mark.read_text()).get("labels")
    except (OSError, ValueError, AttributeError):
        told = None
    # Experiments of earlier versions have no mark; those with labels of a person have a third student.
    return bool(told == TEACHER if told else not mark.with_name("taught").exists())


def recipe_of(run: Path) -> Recipe:
    """The recipe of the run or, if a student of a zero-shot experiment has none, of the student beside it."""
    alone = (run / "config.json").exists() or not (run.parent / ZEROSHOT).exists()
    return Run(run if alone else run.parent / "debiaspl").recipe()


def labels_of_run(run: Path, photos: Path) -> dict[str, str] | None:
    """The labels that a person gave the run, from its current table; None if these are not its photos, or if the folder
    or the table has moved."""
    try:
        recipe = recipe_of(run)
        if recipe.protocol.name != "given" or not os.path.samefile(Path(recipe.data).expanduser(), photos):
            return None
        if learned_from_teacher(run):
            return {}
        given = GivenLabels(**recipe.protocol.settings)
        listing = list_folder(photos, given.table or None, columns=given.columns, folders=given.folders)
    except (RunError, TypeError, ValueError, OSError):
        return None
    labels = listing.labels.tolist()
    pairs = zip(listing.files, labels, strict=True)
    return {file: listing.classes[label] for file, label in pairs if label != UNLABELED}

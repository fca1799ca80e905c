"""Which photos have a label, and which a run has learned from. Labels of a zero-shot teacher do not count."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from debiaspl.data import UNLABELED, DataError, GivenLabels
from debiaspl.data.file_names import FileNames, leads_out
from debiaspl.data.label_table import USUAL, Columns, read_label_table
from debiaspl.data.listing import Listing, list_folder
from debiaspl.files import digest_of_file, parse_json
from debiaspl.training import Run, RunError

ZEROSHOT = ".zeroshot"
"""Marks the folder of a zero-shot experiment, in which labels.csv contains its students' training labels."""
TEACHER, PERSON = "teacher", "person"
"""Values of the mark: who made the labels."""
UNCHECKED = ("none", TEACHER)
"""Kinds of a run's check that say nothing of how often it is right: these labels it has learned from."""


def labeled_files(
    run: Path | None, photos: Path, files: Sequence[str], table: Path | None = None, columns: Columns = USUAL
) -> dict[str, str] | None:
    """Those of ``files`` that need no further label, with their class; None if that is not known.

    The labels come from ``table``, the run's training labels if these are its photos, ``photos/labels.csv`` (which is
    also meant if ``columns`` are named), or class folders beside which there are photos without a label. A table may
    name files that no longer exist.
    """
    beside = photos / "labels.csv"
    if table is None and columns == USUAL:
        if run is not None:
            known = labels_of_run(run, photos)
        else:
            known = {} if beside.is_file() else _labels_of_folders(photos)
        if known or not beside.is_file():
            return known and {file: known[file] for file in files if file in known}
    names = FileNames(photos, files)
    rows = read_label_table(table or beside, columns)
    given = {names.locate(row.name): row.label for row in rows if row.label is not None}
    return {file: given[file] for file in files if file in given}


def _labels_of_folders(photos: Path) -> dict[str, str]:
    try:
        listing = list_folder(photos)
    except DataError:
        return {}
    labeled = _labels_in(listing)
    return labeled if len(labeled) < len(listing.files) else {}


def _labels_in(listing: Listing) -> dict[str, str]:
    pairs = zip(listing.files, listing.labels.tolist(), strict=True)
    return {file: listing.classes[label] for file, label in pairs if label != UNLABELED}


def learned_from_teacher(run: Path) -> bool:
    """Whether the run was trained with the labels of a zero-shot model."""
    try:
        table = Path(str(Run(run).recipe().protocol.settings.get("table", "")))
        # The folder may have been moved, and the table's path may be relative to another folder.
        marks = run / ZEROSHOT, run.parent / ZEROSHOT, table.with_name(ZEROSHOT)
        mark = next(mark for mark in marks if mark.is_file())
        return bool(table.name == "labels.csv" and parse_json(mark.read_text())["labels"] == TEACHER)
    except (RunError, OSError, StopIteration, KeyError, TypeError, ValueError):
        return False


def labels_of_run(run: Path, photos: Path) -> dict[str, str] | None:
    """The labels that a person gave the run, from its current table; None if these are not its photos, or if the folder
    or the table has moved."""
    try:
        recipe = Run(run).recipe()
        if recipe.protocol.name != "given" or not os.path.samefile(Path(recipe.data).expanduser(), photos):
            return None
        if learned_from_teacher(run):
            return {}
        given = GivenLabels(**recipe.protocol.settings)
        listing = list_folder(photos, given.table or None, columns=given.columns, folders=given.folders)
    except (RunError, TypeError, ValueError, OSError):
        return None
    return _labels_in(listing)


def trained_with(run: Path, photos: Path, files: Collection[str]) -> set[str] | None:
    """Those of ``files``, all images of the folder ``photos``, that were labeled training images of the run; None if
    that is not known.

    The run has recorded their names. In another folder than the run's, copies are found by their content.
    """
    if learned_from_teacher(run):
        return set()
    try:
        names = (Run(run).results() or {}).get("learned_from")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return None
        names = set(names)
        origin = Path(Run(run).recipe().data).expanduser()
        if not origin.is_dir():  # moved, or on another machine; names are enough if all of them are here
            return names if names <= set(files) else None
        return names & set(files) if os.path.samefile(origin, photos) else _copies(names, origin, photos, files)
    except (RunError, OSError, ValueError):
        return None


def _copies(names: set[str], origin: Path, photos: Path, files: Collection[str]) -> set[str] | None:
    """Those of ``files`` with the content of a photo of these names below ``origin``; None if some are missing."""
    theirs = [origin / name for name in names]
    if any(leads_out(origin, path) or not path.is_file() for path in theirs):
        return None
    # Only files of equal size are read.
    sizes = {path: path.stat().st_size for path in theirs}
    own = {file: (photos / file).stat().st_size for file in files if (photos / file).is_file()}
    both = set(sizes.values()) & set(own.values())
    contents = {digest_of_file(path) for path, size in sizes.items() if size in both}
    return {file for file, size in own.items() if size in both and digest_of_file(photos / file) in contents}

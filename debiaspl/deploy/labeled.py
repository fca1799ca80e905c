"""Which photos have a label already: as a table says, or as the run was told."""

import csv
import io
import os
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from debiaspl.data import UNLABELED, DataError
from debiaspl.data.listing import UNLABELED_NAME, list_folder, shown
from debiaspl.training import Recipe, Run, RunError


def labeled_files(run: Path, photos: Path, files: Sequence[str], table: Path | None = None) -> set[str] | None:
    """Those of ``files`` that need no further label; None where nobody knows.

    ``table`` says it, or else what the run was trained with, if these are its photos, or else ``photos/labels.csv``.
    A table may name files that are gone.
    """
    if table is None:
        known = _of_run(run, photos)
        if known is not None:
            return known & set(files)
        table = photos / "labels.csv"
        if not table.is_file():
            return None
    by_name = {_composed(file): file for file in files}
    named = (by_name.get(_composed(name)) for name in _named(table))
    return {file for file in named if file is not None}


def _of_run(run: Path, photos: Path) -> set[str] | None:
    """The labels that the run was given, if these are its photos and both are still where they were."""
    try:
        recipe: Recipe = Run(run).recipe()
        if recipe.protocol.name != "given" or not os.path.samefile(Path(recipe.data).expanduser(), photos):
            return None
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


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip())

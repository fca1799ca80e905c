"""The only reader of label tables: CSV with ``file_name,label``, and exports of Label Studio (.json)."""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing import parent_process
from pathlib import Path

from debiaspl.data.class_names import UNLABELED_NAME, composed, means_no_label
from debiaspl.data.csv_text import CsvError, CsvRow, read_text
from debiaspl.data.errors import DataError, counted, shown
from debiaspl.data.file_names import EXTENSIONS, FileNames
from debiaspl.data.label_studio import read_tasks
from debiaspl.data.table_form import USUAL, Columns, Form, form_of, refuse_form
from debiaspl.files import unguarded

ASKED = "asked"
"""The column of new tables that says how the image was chosen: coverage, uncertainty or random; empty if unknown."""
_log = logging.getLogger("debiaspl")
_TOLD: set[str] = set()
CSV = "a csv file of labels"


@dataclass(frozen=True)
class LabelRow:
    """A parsed row."""

    place: str
    """Its place in the file, for messages: ``line 3``."""
    name: str
    """The image, as the table names it."""
    label: str | None
    """None: the image has no label."""


@dataclass(frozen=True)
class LabelText(Form):
    """A CSV table with its original text: unchanged rows can be written back byte for byte."""

    table: Path = Path()

    def cells(self, row: CsvRow) -> tuple[str, str]:
        """The cells of the file and of the label, which may be missing at the end of a row."""
        file, label = (row.cells[place] if place < len(row.cells) else "" for place in self.places)
        return unguarded(file), unguarded(label.strip())

    def understood(self, row: CsvRow) -> LabelRow | None:
        """A parsed row; None for a blank one."""
        if row.is_blank:
            return None
        if any(cell.strip() for cell in row.cells[len(self.names) :]):
            raise DataError(
                f"{self.table} has {len(row.cells)} cells in line {row.line}, expected {len(self.names)} as in its "
                'first line. Put a name with a comma in quotes: "a, b.jpg".'
            )
        name, label = self.cells(row)
        if not name.strip() or _holds_rows(label, self.separator):
            found = "a label over several lines" if name.strip() else "no file name"
            raise DataError(f"{self.table} has {found} in line {row.line}. Is a quote not closed, or a cell missing?")
        return LabelRow(f"line {row.line}", name, class_name(label))


def read_label_table(table: Path, columns: Columns = USUAL) -> tuple[list[LabelRow], tuple[str, ...]]:
    """All rows that name an image, and what was assumed about the table to read them. It does not check that the images
    exist."""
    if table.suffix.lower() == ".json":
        tasks = list(read_tasks(table, columns.file, columns.label))
        rows = [LabelRow(place, name, class_name(label.strip())) for place, name, label in tasks]
        return rows, _assumed_unlabeled(label.strip() for _, _, label in tasks)
    text = split_table(read_text(table, CSV), table, columns)
    rows = [found for row in text.rows if (found := text.understood(row)) is not None]
    return rows, text.assumed + _assumed_unlabeled(text.cells(row)[1] for row in text.rows)


def asked_for(table: Path, columns: Columns = USUAL) -> dict[str, str]:
    """How images were chosen to be labeled, as the column ``asked`` of the table says, by their names; empty without
    it."""
    if table.suffix.lower() == ".json":
        return {}
    text = split_table(read_text(table, CSV), table, columns)
    place = text.names.index(ASKED) if ASKED in text.names else text.places[0]
    if place in text.places:
        return {}
    return {text.cells(row)[0]: unguarded(row.cells[place].strip()) for row in text.rows if len(row.cells) > place}


def tell_assumed(table: Path, assumed: Iterable[str]) -> None:
    """Log in one line how a table was read, once, not in every process."""
    if line := "; ".join(assumed):
        tell_once(f"{table} was read like this: {line}.")


def tell_once(line: str) -> None:
    if line not in _TOLD and parent_process() is None:
        _TOLD.add(line)
        _log.warning("%s", line)


def _assumed_unlabeled(labels: Iterable[str]) -> tuple[str, ...]:
    found = sorted({label for label in labels if means_no_label(label) and label != UNLABELED_NAME})
    return (f"{shown(found)} means no label",) if found else ()


def split_table(text: str, table: Path, columns: Columns = USUAL) -> LabelText:
    """Header and rows, with checked columns."""
    try:
        return LabelText(**vars(form_of(text, columns)), table=table)
    except CsvError as error:
        raise DataError(f"{table} cannot be read from line {error.line} on: {error}. Is a quote not closed?") from error
    except ValueError as error:
        raise refuse_form(table, str(error), columns) from error


@dataclass(frozen=True)
class Matched:
    """The labels of a folder's files in a table."""

    labels: dict[str, str | None]
    """File -> label, None for no label."""
    absent: tuple[str, ...]
    """Files that the table names but that do not exist."""
    assumed: tuple[str, ...]
    """How unusual names were interpreted."""


def match_files(table: Path, rows: Iterable[LabelRow], names: FileNames, allow_absent: bool = False) -> Matched:
    """The labels of the files. Raises if a file has two labels, or if files do not exist, unless that is allowed and
    some do."""
    labels: dict[str, str | None] = {}
    places: dict[str, str] = {}
    missing: list[str] = []
    read_as: Counter[str] = Counter()
    for row in rows:
        if names.below(row.name) is None:
            raise DataError(
                f"{table} names {shown([row.name])} in {row.place}, which is outside of {names.root}. Expected a path "
                f"below {names.root}, relative or absolute. For images elsewhere, link them into it and use "
                "--follow-links."
            )
        file, how = names.found(row.name)
        read_as.update(how)
        if file is None:
            missing.append(row.name)
        elif labels.setdefault(file, row.label) != row.label:
            raise DataError(
                f"{table} says {labels[file] or 'no label'} for {shown([file])} in {places[file]} "
                f"and {row.label or 'no label'} in {row.place}. Keep one of the two."
            )
        else:
            places.setdefault(file, row.place)
    if missing and not (allow_absent and labels):
        raise DataError(
            f"{table} names {counted(missing, 'file')} not in {names.root}: {shown(missing)}. "
            f"Paths are relative to {names.root} and written with /."
        )
    assumed = tuple(f"{how} ({counted_rows(count)})" for how, count in read_as.items())
    return Matched(labels, tuple(dict.fromkeys(missing)), assumed)


def counted_rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def class_name(name: str) -> str | None:
    """The normalised label; None if it means: no label."""
    return None if not name or means_no_label(name) else composed(name)


def _holds_rows(label: str, separator: str) -> bool:
    """Whether a quote that was not closed has made other rows part of this label. A line break alone is no sign of it,
    since class names may contain one."""
    return any(Path(line.partition(separator)[0]).suffix.lower() in EXTENSIONS for line in label.splitlines()[1:])

"""The one reader of label tables: CSV of ``file_name,label``, and exports of Label Studio (.json)."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from debiaspl.data.class_names import UNLABELED_NAME, composed
from debiaspl.data.csv_text import CsvError, CsvRow, csv_rows
from debiaspl.data.errors import DataError, counted, shown
from debiaspl.data.file_names import EXTENSIONS, FileNames
from debiaspl.data.label_studio import read_tasks
from debiaspl.files import unguarded


@dataclass(frozen=True)
class Columns:
    """What a table calls the two columns that count; None: the usual name."""

    file: str | None = None
    """The image; usually ``file_name``."""
    label: str | None = None
    """Its class; usually ``label``."""

    @property
    def names(self) -> tuple[str, str]:
        return self.file or "file_name", self.label or "label"


USUAL = Columns()


@dataclass(frozen=True)
class LabelRow:
    """A row, understood."""

    place: str
    """Where it stands, for messages: ``line 3``."""
    name: str
    """The image, as the table names it."""
    label: str | None
    """None: the image has no label."""


@dataclass(frozen=True)
class LabelText:
    """A CSV table as it stands in its file: what does not change can be written back byte for byte."""

    table: Path
    header: CsvRow
    rows: tuple[CsvRow, ...]
    """Blank ones too."""
    columns: Columns = USUAL

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all columns."""
        return tuple(map(_column, self.header.cells))

    @cached_property
    def places(self) -> tuple[int, int]:
        """Of the columns of files and of labels."""
        wanted = tuple(map(_column, self.columns.names))
        if not set(wanted) <= set(self.names):
            found = f"has the columns {shown(self.names)}" if self.names else "is empty"
            raise DataError(
                f"{self.table} {found}. Expected a first line with {' and '.join(self.columns.names)}, separated by "
                "commas; columns of other names: --file-column, --label-column."
            )
        return self.names.index(wanted[0]), self.names.index(wanted[1])

    def cells(self, row: CsvRow) -> tuple[str, str]:
        """The cells of the file and of the label, which may be missing at the end of a row."""
        file, label = (row.cells[place] if place < len(row.cells) else "" for place in self.places)
        return unguarded(file), unguarded(label.strip())

    def understood(self, row: CsvRow) -> LabelRow | None:
        """What a row says; None for a blank one."""
        if row.is_blank:
            return None
        if any(cell.strip() for cell in row.cells[len(self.names) :]):
            raise DataError(
                f"{self.table} has {len(row.cells)} cells in line {row.line}, expected {len(self.names)} as in its "
                'first line. A name that holds a comma is written in quotes: "a, b.jpg".'
            )
        name, label = self.cells(row)
        if not name.strip() or _holds_rows(label):
            found = "a label that runs over several lines" if name.strip() else "no file name"
            raise DataError(f"{self.table} has {found} in line {row.line}. Is a quote left open, or a cell left out?")
        return LabelRow(f"line {row.line}", name, class_name(label))


def read_label_rows(table: Path, columns: Columns = USUAL) -> list[LabelRow]:
    """All rows that name an image. Whether the images are there is not asked here."""
    if table.suffix.lower() == ".json":
        tasks = read_tasks(table, columns.file, columns.label)
        return [LabelRow(place, name, class_name(label.strip())) for place, name, label in tasks]
    text = split_table(read_text(table), table, columns)
    return [found for row in text.rows if (found := text.understood(row)) is not None]


def read_text(table: Path) -> str:
    """The text of a table, with the mark that some programs put in front."""
    try:
        return table.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{table} is not UTF-8: byte {error.object[error.start]:#x} in line {line}. "
            'Save it as UTF-8 (in a spreadsheet: "CSV UTF-8").'
        ) from error
    except OSError as error:
        raise DataError(f"{table} cannot be read: {error.strerror}. Expected a csv file of labels.") from error


def split_table(text: str, table: Path, columns: Columns = USUAL) -> LabelText:
    """Header and rows; the columns are checked."""
    try:
        rows = csv_rows(text)
    except CsvError as error:
        raise DataError(f"{table} cannot be read from line {error.line} on: {error}. Is a quote left open?") from error
    first = next((number for number, row in enumerate(rows) if not row.is_blank), len(rows))
    header, *others = rows[first:] or [CsvRow("", 1, ())]
    found = LabelText(table, header, tuple(others), columns)
    _ = found.places  # refuses a table without them
    return found


def match_files(
    table: Path, rows: Iterable[LabelRow], names: FileNames, allow_absent: bool = False
) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """File -> label, and what the table names that is not there. Two labels for a file are refused; so are files that
    are not there, unless they are allowed and some are."""
    labels: dict[str, str | None] = {}
    places: dict[str, str] = {}
    missing = []
    for row in rows:
        if names.below(row.name) is None:
            raise DataError(
                f"{table} names {shown([row.name])} in {row.place}, which leads out of {names.root}. Expected a path "
                f"below {names.root}, relative to it or absolute; for images elsewhere, link them into it and use "
                "--follow-links."
            )
        file = names.locate(row.name)
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
    return labels, tuple(dict.fromkeys(missing))


def class_name(name: str) -> str | None:
    """A label as it counts; None for one that means: no label."""
    return None if name in ("", UNLABELED_NAME) else composed(name)


def _column(name: str) -> str:
    return name.strip().casefold()


def _holds_rows(label: str) -> bool:
    """Whether a quote that was left open has made other rows a part of this label. A line break alone is none: class
    names may hold one."""
    return any(Path(line.partition(",")[0]).suffix.lower() in EXTENSIONS for line in label.splitlines()[1:])

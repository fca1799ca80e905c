"""The only reader of label tables: CSV with ``file_name,label``, and exports of Label Studio (.json).

Usual other names of columns and separators are accepted, and reported as assumptions.
"""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from multiprocessing import parent_process
from pathlib import Path, PurePath

from debiaspl._printable import counted
from debiaspl.data.file_names import EXTENSIONS, FileNames
from debiaspl.data.label_studio import read_tasks
from debiaspl.data.text import CsvError, CsvRow, DataError, composed, csv_rows, means_no_label, read_text, shown
from debiaspl.files import unguarded

FILE, LABEL = "file_name", "label"
FILE_ALSO = frozenset(
    (
        *("filename", "file", "file_path", "filepath", "path", "image", "image_name", "image_file", "image_path"),
        *("img", "photo", "picture"),
    )
)
LABEL_ALSO = frozenset(["class", "class_name", "category", "choice", "labels"])
"""Other names of the two columns in tables of other programs."""
ASKED = "asked"
"""The column of new tables that says how the image was chosen: coverage, uncertainty or random; empty if unknown."""
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
CSV = "a csv file of labels"
_log = logging.getLogger("debiaspl")
_TOLD: set[str] = set()


@dataclass(frozen=True)
class Columns:
    """Names of the two relevant columns of a table; None: the default name."""

    file: str | None = None
    label: str | None = None

    @property
    def names(self) -> tuple[str, str]:
        return self.file or FILE, self.label or LABEL


USUAL = Columns()


@dataclass(frozen=True)
class LabelRow:
    """A parsed row."""

    place: str
    """Its place in the file, for messages: ``line 3``."""
    name: str
    """The image, as the table names it."""
    label: str | None
    """None: the image has no label."""
    asked: str = ""


@dataclass(frozen=True)
class LabelText:
    """A CSV table with its original text: unchanged rows can be written back byte for byte."""

    table: Path
    header: CsvRow
    rows: tuple[CsvRow, ...]
    """All other rows, including blank ones."""
    names: tuple[str, ...]
    places: tuple[int, int]
    """Numbers of the file column and of the label column."""
    separator: str

    @property
    def asked(self) -> int | None:
        """Number of the column ``asked``, if there is one and it is not used for something else."""
        place = self.names.index(ASKED) if ASKED in self.names else None
        return None if place in self.places else place

    def understood(self, row: CsvRow) -> LabelRow | None:
        """A parsed row; None for a blank one."""
        if row.is_blank:
            return None
        if any(cell.strip() for cell in row.cells[len(self.names) :]):
            found = f"{self.table} has {len(row.cells)} cells in line {row.line}, expected {len(self.names)}"
            raise DataError(f'{found} as in its first line. Put a name with a comma in quotes: "a, b.jpg".')
        cells = [*row.cells, *[""] * len(self.names)]  # some may be missing at the end of a row
        name, label = unguarded(cells[self.places[0]]), unguarded(cells[self.places[1]].strip())
        # A line break alone is no sign that a quote was not closed: class names may contain one.
        following = [line.partition(self.separator)[0] for line in label.splitlines()[1:]]
        if not name.strip() or any(PurePath(cell.strip()).suffix.lower() in EXTENSIONS for cell in following):
            found = "a label over several lines" if name.strip() else "no file name"
            raise DataError(f"{self.table} has {found} in line {row.line}. Is a quote not closed, or a cell missing?")
        asked = "" if self.asked is None else unguarded(cells[self.asked].strip())
        return LabelRow(f"line {row.line}", name, class_name(label), asked)


def read_label_table(table: Path, columns: Columns = USUAL) -> list[LabelRow]:
    """All rows that name an image, existing or not."""
    if table.suffix.lower() == ".json":
        tasks = read_tasks(table, columns.file, columns.label)
        return [LabelRow(place, name, class_name(label.strip())) for place, name, label in tasks]
    text = split_table(read_text(table, CSV), table, columns)
    return [found for row in text.rows if (found := text.understood(row)) is not None]


def split_table(text: str, table: Path, columns: Columns = USUAL) -> LabelText:
    """Header and rows, with the separator that is most frequent in the first line, and checked columns. What was
    assumed about them is logged once, and not in every process."""
    first_line = re.split(r"[\r\n]", text.lstrip("\ufeff \t\r\n"), maxsplit=1)[0]
    separator = max(SEPARATORS, key=re.sub('"[^"]*"', "", first_line).count)
    try:
        rows = csv_rows(text, separator=separator)
    except CsvError as error:
        raise DataError(f"{table} cannot be read from line {error.line} on: {error}. Is a quote not closed?") from error
    first = next((number for number, row in enumerate(rows) if not row.is_blank), len(rows))
    header, *others = rows[first:] or [CsvRow("", 1, ())]
    names = tuple(name.strip().casefold() for name in header.cells)
    files = _places(names, columns.file, FILE, FILE_ALSO)
    labels = _places(names, columns.label, LABEL, LABEL_ALSO)
    if not len(files) == len(labels) == 1:
        several = [names[place] for places in (files, labels) if len(places) > 1 for place in places]
        which = f", and {shown(several)} could all be meant" if several else ""
        found = f"has the columns {shown(names)}{which}" if names else "is empty"
        expected = f"a first line with {' and '.join(columns.names)}, separated by commas"
        todo = "For other names: --column file=NAME --column label=NAME."
        raise DataError(f"{table} {found}. Expected {expected}. {todo}")
    file, label = files[0], labels[0]
    assumed = [] if separator == "," else [f"separated by {SEPARATORS[separator]}"]
    if (names[file], names[label]) != tuple(name.strip().casefold() for name in columns.names):
        assumed.append(f"files in the column {names[file]} and labels in {names[label]}")
    if assumed:
        tell_once(f"{table} was read like this: {'; '.join(assumed)}.")
    return LabelText(table, header, tuple(others), names, (file, label), separator)


def tell_once(line: str) -> None:
    """Log a line that a command would say each time it reads its input."""
    if line not in _TOLD and parent_process() is None:
        _TOLD.add(line)
        _log.warning("%s", line)


def _places(names: Sequence[str], typed: str | None, usual: str, also: frozenset[str]) -> list[int]:
    """Numbers of the columns that could be meant."""
    exact = [place for place, name in enumerate(names) if name == (typed or usual).strip().casefold()]
    if exact or typed:
        return exact
    return [place for place, name in enumerate(names) if name.replace(" ", "_").replace("-", "_") in also]


def match_files(
    table: Path, rows: Iterable[LabelRow], names: FileNames, allow_absent: bool = False
) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """File -> label, None for no label; and the files that the table names but that do not exist. Raises if one has two
    labels, or if files are absent, unless that is allowed and some exist."""
    labels: dict[str, str | None] = {}
    places: dict[str, str] = {}
    missing: list[str] = []
    for row in rows:
        if names.below(row.name) is None:
            found = f"{table} names {shown([row.name])} in {row.place}, which is outside of {names.root}"
            todo = "For images elsewhere, link them into it and use --follow-links."
            raise DataError(f"{found}. Expected a path below it. {todo}")
        file = names.locate(row.name)
        if file is None:
            missing.append(row.name)
        elif labels.setdefault(file, row.label) != row.label:
            one, other = f"{labels[file] or 'no label'} for {shown([file])}", row.label or "no label"
            raise DataError(f"{table} says {one} in {places[file]} and {other} in {row.place}. Keep one of the two.")
        else:
            places.setdefault(file, row.place)
    if missing and not (allow_absent and labels):
        absent = f"{counted(len(missing), 'file')} not in {names.root}: {shown(missing)}"
        expected = f"Paths are relative to {names.root}, with / and the same capital letters."
        raise DataError(f"{table} names {absent}. {expected}")
    return labels, tuple(dict.fromkeys(missing))


def class_name(name: str) -> str | None:
    """The normalised label; None if it means: no label."""
    return None if not name or means_no_label(name) else composed(name)

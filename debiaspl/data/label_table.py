"""The only reader of label tables: CSV with ``file_name,label``, and exports of Label Studio (.json).

Unusual layouts of CSV are accepted if unambiguous, and reported as assumptions.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from multiprocessing import parent_process
from pathlib import Path, PurePath

from debiaspl.data.file_names import EXTENSIONS, FileNames
from debiaspl.data.label_studio import read_tasks
from debiaspl.data.text import (
    UNLABELED_NAME,
    CsvError,
    CsvRow,
    DataError,
    composed,
    counted,
    csv_rows,
    means_no_label,
    read_text,
    shown,
)
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
    """Column of the image; by default ``file_name``."""
    label: str | None = None
    """Column of the class; by default ``label``."""

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
    """What the column ``asked`` says of how the image was chosen to be labeled: see ``ASKED``."""


@dataclass(frozen=True)
class LabelText:
    """A CSV table with its original text: unchanged rows can be written back byte for byte."""

    table: Path
    header: CsvRow
    """Empty if the table has no line of column names."""
    rows: tuple[CsvRow, ...]
    """All other rows, including blank ones."""
    names: tuple[str, ...]
    places: tuple[int, int]
    """Numbers of the file column and of the label column."""
    separator: str
    assumed: tuple[str, ...]
    """What is unusual, as text."""

    def cells(self, row: CsvRow) -> tuple[str, str]:
        """The cells of the file and of the label, which may be missing at the end of a row."""
        file, label = (row.cells[place] if place < len(row.cells) else "" for place in self.places)
        return unguarded(file), unguarded(label.strip())

    def understood(self, row: CsvRow) -> LabelRow | None:
        """A parsed row; None for a blank one."""
        if row.is_blank:
            return None
        if any(cell.strip() for cell in row.cells[len(self.names) :]):
            found = f"{self.table} has {len(row.cells)} cells in line {row.line}, expected {len(self.names)}"
            raise DataError(f'{found} as in its first line. Put a name with a comma in quotes: "a, b.jpg".')
        name, label = self.cells(row)
        # A line break alone is no sign that a quote was not closed: class names may contain one.
        following = [line.partition(self.separator)[0] for line in label.splitlines()[1:]]
        if not name.strip() or any(map(_names_image, following)):
            found = "a label over several lines" if name.strip() else "no file name"
            raise DataError(f"{self.table} has {found} in line {row.line}. Is a quote not closed, or a cell missing?")
        place = self.names.index(ASKED) if ASKED in self.names else len(row.cells)
        asked = unguarded(row.cells[place].strip()) if place < len(row.cells) and place not in self.places else ""
        return LabelRow(f"line {row.line}", name, class_name(label), asked)


def read_label_table(table: Path, columns: Columns = USUAL) -> tuple[list[LabelRow], tuple[str, ...]]:
    """All rows that name an image, existing or not, and what was assumed about the table to read them."""
    if table.suffix.lower() == ".json":
        tasks = list(read_tasks(table, columns.file, columns.label))
        rows = [LabelRow(place, name, class_name(label.strip())) for place, name, label in tasks]
        return rows, _assumed_unlabeled(label.strip() for _, _, label in tasks)
    text = split_table(read_text(table, CSV), table, columns)
    rows = [found for row in text.rows if (found := text.understood(row)) is not None]
    return rows, text.assumed + _assumed_unlabeled(text.cells(row)[1] for row in text.rows)


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
    """Header and rows in the only layout that fits the text, with checked columns."""
    layouts: list[LabelText] = []
    reasons: list[str] = []
    for separator in SEPARATORS:
        try:
            layout = _layout(csv_rows(text, separator=separator), table, columns, separator)
        except CsvError as error:
            if separator == ",":
                where = f"{table} cannot be read from line {error.line} on"
                raise DataError(f"{where}: {error}. Is a quote not closed?") from error
            continue
        if isinstance(layout, LabelText):
            layouts.append(layout)
        else:  # the reason that counts is that of the separator in the first line
            reasons.insert(0 if separator in text.partition("\n")[0] else len(reasons), layout)
    if layouts and (len(layouts) == 1 or layouts[0].separator == ","):
        return layouts[0]
    expected = f"a first line with {' and '.join(columns.names)}, separated by commas"
    raise DataError(
        f"{table} {reasons[0]}. Expected {expected}. For other names: --column file=NAME --column label=NAME."
    )


def _layout(rows: list[CsvRow], table: Path, columns: Columns, separator: str) -> LabelText | str:
    """The table with this separator, or why it is none."""
    first = next((number for number, row in enumerate(rows) if not row.is_blank), len(rows))
    empty = CsvRow("", 1, ())
    header, *others = rows[first:] or [empty]
    names = tuple(name.strip().casefold() for name in header.cells)
    assumed: tuple[str, ...] = () if separator == "," else (f"separated by {SEPARATORS[separator]}",)
    files = _places(names, columns.file, FILE, FILE_ALSO)
    labels = _places(names, columns.label, LABEL, LABEL_ALSO)
    if len(files) == len(labels) == 1:
        file, label = files[0], labels[0]
        if (names[file], names[label]) != tuple(name.strip().casefold() for name in columns.names):
            assumed += (f"files in the column {names[file]} and labels in {names[label]}",)
        return LabelText(table, header, tuple(others), names, (file, label), separator, assumed)
    # A first line that is already a row: two cells, one of them an image.
    images = [_names_image(cell) for cell in header.cells]
    if columns == USUAL and len(images) == 2 and sum(images) == 1 and all(names):
        file = images.index(True)
        assumed += (f"no line of column names; files in column {file + 1}, labels in column {2 - file}",)
        nameless = (FILE, LABEL) if file == 0 else (LABEL, FILE)
        return LabelText(table, empty, tuple(rows), nameless, (file, 1 - file), separator, assumed)
    several = [names[place] for places in (files, labels) if len(places) > 1 for place in places]
    which = f", and {shown(several)} could all be meant" if several else ""
    return f"has the columns {shown(names)}{which}" if names else "is empty"


def _places(names: Sequence[str], typed: str | None, usual: str, also: frozenset[str]) -> list[int]:
    """Numbers of the columns that could be meant."""
    exact = [place for place, name in enumerate(names) if name == (typed or usual).strip().casefold()]
    if exact or typed:
        return exact
    return [place for place, name in enumerate(names) if name.replace(" ", "_").replace("-", "_") in also]


def _names_image(cell: str) -> bool:
    return PurePath(cell.strip()).suffix.lower() in EXTENSIONS


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
    """The labels of the files. Raises if one has two, or if files are absent, unless that is allowed and some exist."""
    labels: dict[str, str | None] = {}
    places: dict[str, str] = {}
    missing: list[str] = []
    read_as: Counter[str] = Counter()
    for row in rows:
        if names.below(row.name) is None:
            raise DataError(
                f"{table} names {shown([row.name])} in {row.place}, which is outside of {names.root}. Expected a path "
                "below it. For images elsewhere, link them into it and use --follow-links."
            )
        file, how = names.found(row.name)
        read_as.update(how)
        if file is None:
            missing.append(row.name)
        elif labels.setdefault(file, row.label) != row.label:
            one, other = f"{labels[file] or 'no label'} for {shown([file])}", row.label or "no label"
            raise DataError(f"{table} says {one} in {places[file]} and {other} in {row.place}. Keep one of the two.")
        else:
            places.setdefault(file, row.place)
    if missing and not (allow_absent and labels):
        absent = f"{counted(missing, 'file')} not in {names.root}: {shown(missing)}"
        raise DataError(f"{table} names {absent}. Paths are relative to {names.root} and written with /.")
    assumed = tuple(f"{how} ({count:,} row{'' if count == 1 else 's'})" for how, count in read_as.items())
    return Matched(labels, tuple(dict.fromkeys(missing)), assumed)


def class_name(name: str) -> str | None:
    """The normalised label; None if it means: no label."""
    return None if not name or means_no_label(name) else composed(name)

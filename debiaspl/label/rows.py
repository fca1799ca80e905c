"""The text of labels.csv as rows, and back: what is not changed keeps every byte it had."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from debiaspl.data.errors import DataError
from debiaspl.data.listing import shown

FILE, LABEL = "file_name", "label"


@dataclass(frozen=True)
class Row:
    """One row as it stands in the file, and what it says."""

    raw: str
    """With the line's end; a name with a line break makes it several lines."""
    line: int
    cells: tuple[str, ...]
    """Empty for a blank line."""


@dataclass(frozen=True)
class Text:
    """A whole table."""

    header: Row
    rows: tuple[Row, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(cell.strip().casefold() for cell in self.header.cells)

    @property
    def line_end(self) -> str:
        return "\r\n" if self.header.raw.endswith("\r\n") else "\n"

    def is_cut(self, row: Row) -> bool:
        """Whether this row may have lost its end: the last one, in one line that does not end."""
        return bool(self.rows) and row is self.rows[-1] and not row.raw.endswith(("\n", "\r")) and "\n" not in row.raw


NEW = Text(Row(f"{FILE},{LABEL}\n", 1, (FILE, LABEL)), ())


def read_rows(path: Path) -> Text:
    """The rows of a table; a table that is not there, or that was only just begun, is a new one."""
    try:
        content = path.read_bytes()
        text = content.decode("utf-8")
    except FileNotFoundError:
        return NEW
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Expected a csv file of labels.") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path} is not UTF-8: byte {error.object[error.start]:#x} in line {line}. "
            'Save it as UTF-8 (in a spreadsheet: "CSV UTF-8").'
        ) from error
    if NEW.header.raw.startswith(text.strip("\ufeff")):
        return NEW
    found = _split(text, path)
    while found and not found[0].cells:
        found.pop(0)
    table = Text(_ended(found[0]), tuple(found[1:])) if found else NEW
    if not {FILE, LABEL} <= set(table.columns):
        raise DataError(
            f"{path} has the columns {shown(table.columns)}. "
            f"Expected a first line with {FILE} and {LABEL}, separated by commas; or another table: --labels."
        )
    _check(table, path)
    return table


def _split(text: str, path: Path) -> list[Row]:
    rows: list[Row] = []
    taken: list[str] = []
    reader, line = csv.reader(_remembered(text, taken), skipinitialspace=True), 1
    try:
        for cells in reader:
            blank = not any(cell.strip() for cell in cells)
            rows.append(Row("".join(taken), line, () if blank else tuple(cells)))
            taken.clear()
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path} cannot be read from line {line} on: {error}. Is a quote left open?") from error
    return rows


def _ended(row: Row) -> Row:
    return row if row.raw.endswith(("\n", "\r")) else replace(row, raw=row.raw + "\n")


def _remembered(text: str, taken: list[str]) -> Iterator[str]:
    """Lines for a reader, kept as they were until it has made a row of them."""
    for number, line in enumerate(io.StringIO(text, newline="")):
        taken.append(line)
        yield line if number else line.removeprefix("\ufeff")


def _check(table: Text, path: Path) -> None:
    width = len(table.columns)
    for row in table.rows:
        if any(cell.strip() for cell in row.cells[width:]):
            raise DataError(
                f"{path} has {len(row.cells)} cells in line {row.line}, expected {width} as in its first line. "
                'A name that holds a comma is written in quotes: "a, b.jpg".'
            )
    if table.rows and is_open(table.rows[-1].raw) and not table.is_cut(table.rows[-1]):
        raise DataError(f"{path} has a quote left open in line {table.rows[-1].line}. Close it, or remove it.")


def is_open(raw: str) -> bool:
    """Whether a row ends inside quotes: it would then go on in a further line."""
    lines = [*io.StringIO(raw if raw.endswith("\n") else raw + "\n", newline=""), "further"]
    return len(list(csv.reader(lines, skipinitialspace=True))) < 2


def written(cells: Sequence[str], line_end: str) -> str:
    """A row as text. Spaces around a name are part of it, so they are quoted: readers drop those that are not."""
    return ",".join(map(_quoted, cells)) + line_end


def _quoted(cell: str) -> str:
    plain = cell == cell.strip() and not any(letter in cell for letter in ',"\r\n')
    return cell if plain else '"' + cell.replace('"', '""') + '"'

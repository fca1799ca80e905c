"""CSV as text: rows with the text that they were read from, and the one writer of cells."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from debiaspl.data.errors import DataError
from debiaspl.files import guarded


@dataclass(frozen=True)
class CsvRow:
    """One row as it stands in the file, and what it says."""

    raw: str
    """With the line's end; a name with a line break makes it several lines."""
    line: int
    """The line that it begins in, from 1."""
    cells: tuple[str, ...]

    @property
    def is_blank(self) -> bool:
        return not any(cell.strip() for cell in self.cells)


class CsvError(DataError):
    """Text that is not CSV."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def csv_rows(text: str, strict: bool = False, separator: str = ",") -> list[CsvRow]:
    """All rows, blank ones too; their raw texts together are the text. ``strict`` refuses quotes in odd places."""
    rows: list[CsvRow] = []
    taken: list[str] = []
    reader = csv.reader(_remembered(text, taken), skipinitialspace=True, strict=strict, delimiter=separator)
    line = 1
    try:
        for cells in reader:
            rows.append(CsvRow("".join(taken), line, tuple(cells)))
            taken.clear()
            line = reader.line_num + 1
    except csv.Error as error:
        raise CsvError(str(error), line) from error
    return rows


def is_open(raw: str, separator: str = ",") -> bool:
    """Whether a row ends inside quotes: it would then go on in a further line."""
    lines = [*io.StringIO(raw if raw.endswith("\n") else raw + "\n", newline=""), "further"]
    return len(list(csv.reader(lines, skipinitialspace=True, delimiter=separator))) < 2


def csv_line(cells: Sequence[str], end: str = "\n", separator: str = ",") -> str:
    """A row as text."""
    return separator.join(cell(text, separator) for text in cells) + end


def cell(text: str, separator: str = ",") -> str:
    """A cell that no spreadsheet runs. Quoted also where Python's csv would not: a lone carriage return ends a line for
    many readers, and spaces at an end are lost."""
    text = guarded(text)
    plain = text == text.strip() and not any(letter in text for letter in separator + '"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'


def _remembered(text: str, taken: list[str]) -> Iterator[str]:
    """Lines for a reader, kept as they were until it has made a row of them. The mark that spreadsheets put in front
    is no part of the first cell."""
    for number, line in enumerate(io.StringIO(text, newline="")):
        taken.append(line)
        yield line if number else line.removeprefix("\ufeff")

"""Text files and CSV: rows with their original text, and the only writer of cells."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from debiaspl.data.errors import DataError
from debiaspl.files import guarded


@dataclass(frozen=True)
class CsvRow:
    """One row: its cells, and its text in the file."""

    raw: str
    """The original text with the line end; several lines if a cell contains a line break."""
    line: int
    """The number of its first line, from 1."""
    cells: tuple[str, ...]

    @property
    def is_blank(self) -> bool:
        return not any(cell.strip() for cell in self.cells)


def read_text(file: Path, expected: str) -> str:
    """The text of a file, including a byte order mark. ``expected`` says what it should be, for errors."""
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{file} is not UTF-8: byte {error.object[error.start]:#x} in line {line}. Expected {expected}. Save it as "
            'UTF-8 (in a spreadsheet: "CSV UTF-8").'
        ) from error
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}. Expected {expected}.") from error


class CsvError(DataError):
    """Text that is not CSV."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def csv_rows(text: str, strict: bool = False, separator: str = ",") -> list[CsvRow]:
    """All rows, including blank ones; joined, their raw texts are the text. ``strict`` rejects misplaced quotes."""
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
    """Whether a row ends inside quotes, so that it would continue on the next line."""
    lines = [*io.StringIO(raw if raw.endswith("\n") else raw + "\n", newline=""), "further"]
    return len(list(csv.reader(lines, skipinitialspace=True, delimiter=separator))) < 2


def csv_line(cells: Sequence[str], end: str = "\n", separator: str = ",") -> str:
    """A row as CSV text."""
    return separator.join(cell(text, separator) for text in cells) + end


def cell(text: str, separator: str = ",") -> str:
    """A cell that no spreadsheet runs as a formula. It is quoted in more cases than in Python's csv: a lone carriage
    return ends a line for many readers, and spaces at the ends get lost."""
    text = guarded(text)
    plain = text == text.strip() and not any(letter in text for letter in separator + '"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'


def _remembered(text: str, taken: list[str]) -> Iterator[str]:
    """Lines for a csv reader, which are also kept in ``taken`` until it has made a row. The byte order mark is not part
    of the first cell."""
    for number, line in enumerate(io.StringIO(text, newline="")):
        taken.append(line)
        yield line if number else line.removeprefix("\ufeff")

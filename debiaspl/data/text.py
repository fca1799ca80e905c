"""What people write: class names and CSV, and how messages repeat it. All commands read them by the same rules."""

import csv
import io
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from debiaspl.files import guarded


class DataError(ValueError):
    """Bad data; the message says what was found, what was expected and what to do."""


def shown(names: Sequence[str], limit: int = 5) -> str:
    """The first names, for a message; names with line breaks or undecodable bytes as Python literals."""
    first = ", ".join(name if name.isprintable() else repr(name) for name in names[:limit])
    return f"{first} and {len(names) - limit} more" if len(names) > limit else first


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
        found = f"byte {error.object[error.start]:#x} in line {line}"
        raise DataError(f"{file} is not UTF-8: {found}. Expected {expected}. Save it as UTF-8.") from error
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
    """Lines for a csv reader, without a byte order mark, which are kept in ``taken`` until it has made a row."""
    for number, line in enumerate(io.StringIO(text, newline="")):
        taken.append(line)
        yield line if number else line.removeprefix("\ufeff")


UNLABELED_NAME = "unlabeled"
"""A class folder, or a label in a table, with this name (or another spelling of it) means: no label."""
_ALSO_UNLABELED = frozenset(("unlabeled", "unlabelled", "nolabel", "notlabeled", "notlabelled"))
_NO_VALUE = frozenset(("nan", "na", "n/a", "<na>", "none", "null", "nil", "?", "-1", "-", "#n/a"))
TYPED = "--classes"


def means_no_label(name: str) -> bool:
    """Whether a name is another spelling of ``unlabeled``, such as ``Unlabelled`` or ``no_label``, and not a class."""
    return re.sub(r"[\W_]+", "", name.casefold()) in _ALSO_UNLABELED


def means_no_value(name: str) -> bool:
    """Whether a label is what programs write where there is none, such as ``NaN``, ``None`` or ``?``."""
    return name.strip().casefold() in _NO_VALUE


def read_class_names(text: str) -> tuple[str, ...]:
    """Parse ``--classes``: names separated by commas, or the path of a file with one name per line. A name with a
    comma, or that begins with a quote, must be in quotes: ``owl,"heron, grey"``."""
    if os.path.isfile(text):
        return class_names_in(Path(text))
    try:
        rows = csv_rows(text, strict=True)
    except CsvError as error:
        example = 'Put a name with a comma in quotes: \'owl,"heron, grey","the ""big"" one"\'.'
        raise DataError(f"{TYPED} is {text!r}: {error}. Expected names separated by commas. {example}") from error
    names = [name for row in rows for name in row.cells]
    if len(names) == 1 and (Path(text).suffix or Path(text).parent.name):
        raise DataError(f"{TYPED} is {text!r}, and there is no such file. Expected names with commas, or a file.")
    return check_class_names(names, TYPED)


def class_names_in(file: Path) -> tuple[str, ...]:
    """The lines of a text file as they are, without quoting rules. Empty lines are left out."""
    lines = io.StringIO(read_text(file, "one class per line").removeprefix("\ufeff"), newline=None)
    return check_class_names([line for line in lines if line.strip()], str(file))


def check_class_names(names: Iterable[str], origin: str = "classes", alike: bool = False) -> tuple[str, ...]:
    """The names without surrounding spaces and with composed accents. Raises unless two or more are different, not only
    in upper and lower case, unless ``alike`` is true: text models and some file systems do not distinguish them."""
    given = names if isinstance(names, str) else list(names)
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise DataError(f"{origin} is {given!r}, expected a list of names, such as ['river', 'forest'].")
    classes = tuple(composed(name.strip()) for name in given)
    if "" in classes:
        unnamed = f"class {classes.index('') + 1} of {len(classes)} has no name"
        raise DataError(f'{origin}: {unnamed}. Expected names separated by single commas: "river,forest,highway".')
    broken = [name for name in classes if means_no_label(name) or not is_utf8(name) or set(name) & {"\r", "\n"}]
    if broken:
        expected = f"names on one line in UTF-8, none of them {UNLABELED_NAME!r}, which means no label"
        raise DataError(f"{origin} contains {broken[0]!r}. Expected {expected}.")
    if len(classes) < 2:
        found = f"one class, {classes[0]!r}" if classes else "no class"
        raise DataError(f"{origin} has {found}. Expected two or more names, separated by commas or one per line.")
    keys = [name if alike else name.casefold() for name in classes]
    if len(set(keys)) < len(keys):
        twice = next(name for place, name in enumerate(classes) if keys[place] in keys[:place])
        raise DataError(f"{origin} has the class {twice!r} twice, or only in another case. Expected different names.")
    return classes


def is_utf8(name: str) -> bool:
    """Whether text can be written: bytes of names that are not UTF-8 become lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def composed(name: str) -> str:
    """Combine each letter and its accent into one character; macOS file names have two."""
    return unicodedata.normalize("NFC", name)

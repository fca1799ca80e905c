"""labels.csv during labelling: every answer is on the disk before it is confirmed, and other rows keep every byte."""

import os
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from debiaspl.data.file_names import FileNames, leaves
from debiaspl.data.label_table import ASKED, CSV, USUAL, Columns, LabelText, match_files, split_table
from debiaspl.data.text import DataError, csv_line, is_open, read_text, shown
from debiaspl.files import unguarded, write_whole


@dataclass(frozen=True)
class Entry:
    """A row of the table, parsed."""

    raw: str
    file: str | None
    """None for a blank line, which is kept as it is."""
    label: str | None
    """None: the image was shown and skipped."""
    others: tuple[str, ...] = ()
    """What its other columns hold, in their order."""
    asked: str = ""


class Table:
    """The rows of a table in their order: the last row is the last answer. No label: the image was skipped.

    A new table is written beside the old one and renamed, so that a kill leaves either the old or the new one. It is
    read again when another program has changed it.
    """

    def __init__(
        self, path: Path, names: FileNames, classes: Sequence[str] | None = None, columns: Columns = USUAL
    ) -> None:
        # A table that is a link stays one: what it points to is replaced.
        self.path, self._names = Path(os.path.realpath(path)), names
        self._classes, self._columns = classes, columns
        self.answers: dict[str, str | None] = {}
        """File -> label, None where it was skipped; the last answer last."""
        self.asked: dict[str, str] = {}
        """File -> how it was chosen."""
        self._read()

    @property
    def options(self) -> list[str]:
        """Options that a command needs to read this table, besides its path."""
        named = {"file": self._columns.file, "label": self._columns.label}
        return [word for role, name in named.items() if name for word in ("--column", f"{role}={name}")]

    @property
    def last(self) -> tuple[str, str | None] | None:
        """The last answer: file and label."""
        return next(((entry.file, entry.label) for entry in reversed(self._entries) if entry.file is not None), None)

    def answer(self, file: str, label: str | None, asked: str = "") -> None:
        self.answer_all({file: label}, asked)

    def answer_all(self, answers: Mapping[str, str | None], asked: str = "") -> None:
        """Add rows at the end. Earlier rows of the same files are removed; their other columns are kept. ``asked`` is
        how the images were chosen, for tables with this column."""
        self.refresh()
        old = {entry.file: entry for entry in self._entries if entry.file in answers}
        kept = [entry for entry in self._entries if entry.file not in answers]
        self._write([*kept, *(self._made(file, label, asked, old.get(file)) for file, label in answers.items())])

    def undo(self) -> tuple[str, str | None] | None:
        """Undo the last answer; returns its file and label, or None if there is no answer."""
        self.refresh()
        if (last := self.last) is None:
            return None
        others = [cell for entry in self._entries if entry.file == last[0] for cell in entry.others if cell]
        if others:
            found = f"the last row of {self.path} has other columns too ({shown(others)}), which would be lost"
            raise DataError(f"{found}. Change it in the table itself.")
        self._write([entry for entry in self._entries if entry.file != last[0]])
        return last

    def _made(self, file: str, label: str | None, asked: str, old: Entry | None) -> Entry:
        kept, asked = (old.others, old.asked or asked) if old is not None else ((), asked)
        text, others = self._text, iter(kept)
        values = dict(zip((*text.places, text.asked), (file, label or "", asked), strict=True))
        cells = [values[place] if place in values else next(others, "") for place in range(len(text.names))]
        end = "\r\n" if text.header.raw.endswith("\r\n") else "\n"
        return Entry(csv_line(cells, end, text.separator), file, label, kept, asked)

    def refresh(self) -> None:
        """Read the table again if another program has changed it. A file that was removed is written again."""
        if _state(self.path) not in (None, self._seen):
            self._read()

    def _read(self) -> None:
        # Looked at before it is read: a change in between is then seen the next time.
        seen = _state(self.path)
        self._text, entries = _read_entries(self.path, self._names, self._classes, self._columns)
        self._take(entries, seen)

    def _write(self, entries: Sequence[Entry]) -> None:
        content = (self._text.header.raw + "".join(entry.raw for entry in entries)).encode()

        def write(file: BinaryIO) -> None:
            file.write(content)
            if self.path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(self.path.stat().st_mode))

        write_whole(self.path, write)
        self._take(entries, _state(self.path))

    def _take(self, entries: Sequence[Entry], seen: tuple[int, int, int] | None) -> None:
        self._entries, self._seen = entries, seen
        self.answers = {entry.file: entry.label for entry in entries if entry.file is not None}
        self.asked = {entry.file: entry.asked for entry in entries if entry.file is not None}


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _read_entries(
    path: Path, names: FileNames, classes: Sequence[str] | None, columns: Columns
) -> tuple[LabelText, list[Entry]]:
    """The table at ``path``, refused where training would refuse it, or where a label is not among ``classes``."""
    text = _text(path, columns)
    if text.rows and is_open(text.rows[-1].raw, text.separator):
        raise DataError(f"{path} has a quote left open in line {text.rows[-1].line}. Close it, or remove it.")
    understood = [(row, text.understood(row)) for row in text.rows]
    match_files(path, (said for _, said in understood if said is not None), names)
    entries, own = [], {*text.places, text.asked}
    for row, said in understood:
        file, label, asked = (None, None, "") if said is None else (names.locate(said.name), said.label, said.asked)
        others = tuple(unguarded(cell) for place, cell in enumerate(row.cells) if place not in own)
        entries.append(Entry(row.raw, file, label, others, asked))
    known = {None, *(classes or ())}
    unknown = Counter(entry.label for entry in entries if entry.label not in known)
    if classes is not None and unknown:
        found = shown([f"{label} ({count:,})" for label, count in sorted(unknown.items())])
        todo = "Add them to the classes, correct them, or write to another table: --out."
        among = f"that are not among the classes ({shown(classes, limit=20)})"
        raise DataError(f"{path} has labels {among}: {found}. {todo}")
    return text, entries


def why_unnameable(file: str) -> str | None:
    """Why a file cannot be named in a table, or None if it can."""
    try:
        file.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8, so labels.csv cannot hold it; rename it"
    return "its name looks like a path that leaves the folder; rename it" if leaves(file) else None


def _text(path: Path, columns: Columns) -> LabelText:
    """The table, with a line end at its end; a new one if there is none."""
    if path.suffix.lower() == ".json":
        raise DataError(f"answers go into a CSV file, and {path} is JSON. Choose another table: --out.")
    text = read_text(path, CSV) if path.exists() else ""
    if not text.strip("\ufeff\r\n"):
        text = csv_line((*columns.names, ASKED))
    if not text.endswith(("\n", "\r")):
        text += "\r\n" if "\r\n" in text else "\n"
    return split_table(text, path, columns)

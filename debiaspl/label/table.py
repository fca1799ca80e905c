"""labels.csv during labelling: every answer is on the disk before it is confirmed, and other rows keep every byte."""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from debiaspl.data.file_names import FileNames, leaves
from debiaspl.data.label_table import ASKED, CSV, USUAL, Columns, LabelText, match_files, split_table, tell_assumed
from debiaspl.data.text import CsvRow, DataError, composed, csv_line, is_open, read_text, shown
from debiaspl.files import try_lock, unguarded, write_whole


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
        self.cut: str | None = None
        """A last line that was cut off, and is left out."""
        self.answers: Mapping[str, str | None] = {}
        """File -> label, None where it was skipped; the last answer last."""
        self.asked: Mapping[str, str] = {}
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
        with self._alone():
            old = {entry.file: entry for entry in self._entries if entry.file in answers}
            kept = [entry for entry in self._entries if entry.file not in answers]
            made = [self._made(file, label, asked, old.get(file)) for file, label in answers.items()]
            self._write([*kept, *made])

    def undo(self) -> tuple[str, str | None] | None:
        """Undo the last answer; returns its file and label, or None if there is no answer."""
        with self._alone():
            last = self.last
            if last is None:
                return None
            file = last[0]
            others = [cell for entry in self._entries if entry.file == file for cell in entry.others if cell]
            if others:
                found = f"the last row of {self.path} has other columns too ({shown(others)}), which would be lost"
                raise DataError(f"{found}. Change it in the table itself.")
            self._write([entry for entry in self._entries if entry.file != file])
            return last

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Read the table again, and keep other processes from writing it: one that was started after the lock file of
        this one was deleted has it open too."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path.parent, os.O_RDONLY)
        try:
            try_lock(descriptor, wait=True)
            self.refresh()
            yield
        finally:
            os.close(descriptor)

    def _made(self, file: str, label: str | None, asked: str, old: Entry | None) -> Entry:
        kept, asked = (old.others, old.asked or asked) if old is not None else ((), asked)
        others, values = iter(kept), dict(zip(self._text.places, (file, label or ""), strict=True))
        values |= dict.fromkeys(_asked_places(self._text), asked)
        cells = [values[place] if place in values else next(others, "") for place in range(len(self._text.names))]
        return Entry(csv_line(cells, _line_end(self._text), self._text.separator), file, label, kept, asked)

    def refresh(self) -> None:
        """Read the table again if another program has changed it. A file that was removed is written again."""
        state = _state(self.path)
        if state is not None and state != self._seen:
            self._read()

    def _read(self) -> None:
        # Looked at before it is read: a change in between is then seen the next time.
        seen = _state(self.path)
        self._text, entries, self.cut = _read_entries(self.path, self._names, self._classes, self._columns)
        self._seen = seen
        self._take(entries)

    def _write(self, entries: Iterable[Entry]) -> None:
        entries = tuple(entries)
        content = (self._text.header.raw + "".join(entry.raw for entry in entries)).encode()

        def write(file: BinaryIO) -> None:
            file.write(content)
            if self.path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(self.path.stat().st_mode))

        write_whole(self.path, write)
        self._seen = _state(self.path)
        self._take(entries)

    def _take(self, entries: tuple[Entry, ...]) -> None:
        self._entries = entries
        self.answers = {entry.file: entry.label for entry in entries if entry.file is not None}
        self.asked = {entry.file: entry.asked for entry in entries if entry.file is not None}


def _asked_places(text: LabelText) -> list[int]:
    """The place of the column ``asked``, if the table has it."""
    return [place for place, name in enumerate(text.names) if name == ASKED and place not in text.places]


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _read_entries(
    path: Path, names: FileNames, classes: Sequence[str] | None, columns: Columns
) -> tuple[LabelText, tuple[Entry, ...], str | None]:
    """The table at ``path``, refused where training would refuse it, or where a label is not among ``classes``; and a
    last line that was cut off, which is left out."""
    text = _text(path, columns)
    rows, cut = list(text.rows), None
    if rows and not rows[-1].raw.endswith(("\n", "\r")) and "\n" not in rows[-1].raw:
        if _is_torn(rows[-1], text, names, classes or ()):
            cut = rows.pop().raw
        else:
            rows[-1] = replace(rows[-1], raw=rows[-1].raw + _line_end(text))
    if rows and is_open(rows[-1].raw, text.separator):
        raise DataError(f"{path} has a quote left open in line {rows[-1].line}. Close it, or remove it.")
    understood = [(row, text.understood(row)) for row in rows]
    matched = match_files(path, (said for _, said in understood if said is not None), names)
    tell_assumed(path, text.assumed + matched.assumed)
    entries, ours = [], _asked_places(text)
    for row, said in understood:
        file, label = (None, None) if said is None else (names.locate(said.name), said.label)
        cells = {place: unguarded(cell) for place, cell in enumerate(row.cells) if place not in text.places}
        asked = "".join(cells.pop(place, "") for place in ours)
        entries.append(Entry(row.raw, file, label, tuple(cells.values()), asked))
    known = {None, *(classes or ())}
    unknown = Counter(entry.label for entry in entries if entry.label not in known)
    if classes is not None and unknown:
        found = shown([f"{label} ({count:,})" for label, count in sorted(unknown.items())])
        raise DataError(
            f"{path} has labels that are not among the classes ({shown(classes, limit=20)}): {found}. Add them to the "
            "classes, correct them, or write to another table: --out."
        )
    return text, tuple(entries), cut


def _line_end(text: LabelText) -> str:
    first = text.header.raw or "".join(row.raw for row in text.rows[:1])
    return "\r\n" if first.endswith("\r\n") else "\n"


def why_unnameable(file: str) -> str | None:
    """Why a file cannot be named in a table, or None if it can."""
    try:
        file.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8, so labels.csv cannot hold it; rename it"
    return "its name looks like a path that leaves the folder; rename it" if leaves(file) else None


def _text(path: Path, columns: Columns) -> LabelText:
    """The table; a new one if there is none, or only the beginning of one."""
    if path.suffix.lower() == ".json":
        raise DataError(f"answers go into a CSV file, and {path} is JSON. Choose another table: --out.")
    text = read_text(path, CSV) if path.exists() else ""
    begun = csv_line((*columns.names, ASKED))
    found = split_table(begun if begun.startswith(text.strip("\ufeff")) else text, path, columns)
    header = found.header
    if not header.raw or header.raw.endswith(("\n", "\r")):
        return found
    return replace(found, header=replace(header, raw=header.raw + "\n"))


def _is_torn(row: CsvRow, text: LabelText, names: FileNames, classes: Sequence[str]) -> bool:
    """Whether a row without a line end may be incomplete: "owl" may be the beginning of "owlet"."""
    if row.is_blank or is_open(row.raw, text.separator) or len(row.cells) < len(text.names):
        return True
    name, label = text.cells(row)
    begun = any(each != composed(label) and each.startswith(composed(label)) for each in classes)
    return begun or not label or names.locate(name) is None

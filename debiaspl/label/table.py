"""labels.csv while it is being filled: every answer is on the disk before it counts."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from debiaspl.data.csv_text import csv_line
from debiaspl.data.errors import DataError, shown
from debiaspl.data.file_names import FileNames
from debiaspl.data.label_table import USUAL, Columns
from debiaspl.files import write_whole
from debiaspl.label.entries import Entry, line_end, read_entries


class Table:
    """The rows of a table in their order: the last row is the last answer. No label: the image was skipped.

    The file is the truth. It is written whole beside itself and renamed, so that a kill leaves the old table or the new
    one; and it is read again when another program has changed it.
    """

    def __init__(
        self, path: Path, names: FileNames, classes: Sequence[str] | None = None, columns: Columns = USUAL
    ) -> None:
        # A table that is a link stays one: what it points to is replaced.
        self.path, self._names = Path(os.path.realpath(path)), names
        self._classes, self._columns = classes, columns
        self.cut: str | None = None
        """A last line that was cut off, and is left out."""
        self._read()

    @property
    def answers(self) -> Mapping[str, str | None]:
        """File -> label, None where it was skipped; the last answer last."""
        return self._answers

    @property
    def options(self) -> list[str]:
        """What a command must be told to read this table, beside its name."""
        named = (("--file-column", self._columns.file), ("--label-column", self._columns.label))
        return [word for option, name in named if name for word in (option, name)]

    @property
    def last(self) -> tuple[str, str | None] | None:
        """The last answer: file and label."""
        last = next((entry for entry in reversed(self._entries) if entry.file is not None), None)
        return None if last is None or last.file is None else (last.file, last.label)

    def classes_found(self) -> tuple[str, ...]:
        return tuple(sorted({label for label in self._answers.values() if label is not None}))

    def answer(self, file: str, label: str | None) -> None:
        self.answer_all({file: label})

    def answer_all(self, answers: Mapping[str, str | None]) -> None:
        """Add rows at the end; those that the table has of these files already go, but for their other columns."""
        self.refresh()
        old = {entry.file: entry for entry in self._entries if entry.file in answers}
        kept = [entry for entry in self._entries if entry.file not in answers]
        made = [self._made(file, label, old.get(file)) for file, label in answers.items()]
        self._write([*kept, *made])

    def undo(self) -> tuple[str, str | None] | None:
        """Take the last answer back; the file and its label, or None if there is no answer."""
        self.refresh()
        last = next((entry for entry in reversed(self._entries) if entry.file is not None), None)
        if last is None or last.file is None:
            return None
        if any(last.others):
            others = shown([cell for cell in last.others if cell])
            raise DataError(
                f"the last row, of {shown([last.file])}, holds more than a label ({others}), which would "
                f"be lost. Change it in {self.path} itself."
            )
        self._write([entry for entry in self._entries if entry.file != last.file])
        return last.file, last.label

    def _made(self, file: str, label: str | None, old: Entry | None) -> Entry:
        kept = old.others if old is not None else ()
        others, values = iter(kept), dict(zip(self._text.places, (file, label or ""), strict=True))
        cells = [values[place] if place in values else next(others, "") for place in range(len(self._text.names))]
        return Entry(csv_line(cells, line_end(self._text)), file, label, kept)

    def refresh(self) -> None:
        """Take over what another program has written. A file that is gone is written again from what is known."""
        state = _state(self.path)
        if state is not None and state != self._seen:
            self._read()

    def _read(self) -> None:
        # Looked at before it is read: a change in between is then seen the next time.
        seen = _state(self.path)
        found = read_entries(self.path, self._names, self._classes, self._columns)
        self._seen, self._text, self.cut = seen, found.text, found.cut
        self._take(found.entries)

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
        self._answers = {entry.file: entry.label for entry in entries if entry.file is not None}


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns

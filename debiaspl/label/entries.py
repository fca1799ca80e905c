"""What the rows of a table say: which file, which label."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from debiaspl.data.class_names import UNLABELED_NAME, composed
from debiaspl.data.errors import DataError
from debiaspl.data.listing import shown
from debiaspl.label.names import Names
from debiaspl.label.rows import FILE, LABEL, Row, Text, is_open, read_rows


@dataclass(frozen=True)
class Entry:
    """A row, understood."""

    raw: str
    file: str | None
    """None for a blank line, which is kept as it is."""
    label: str | None
    """None: the image was looked at and has no label."""
    others: tuple[str, ...] = ()
    """What its other columns hold, in their order."""


@dataclass(frozen=True)
class Entries:
    """A whole table, understood."""

    text: Text
    entries: tuple[Entry, ...]
    cut: str | None
    """A last line that was cut off, and is left out."""


def read_entries(path: Path, names: Names, classes: Sequence[str] | None) -> Entries:
    """The table at ``path``, refused where training would refuse it, or where a label is not among ``classes``."""
    text = read_rows(path)
    rows, cut = list(text.rows), None
    if rows and text.is_cut(rows[-1]):
        if _is_torn(rows[-1], text, names, classes or ()):
            cut = rows.pop().raw
        else:
            rows[-1] = replace(rows[-1], raw=rows[-1].raw + text.line_end)
    entries = tuple(_entry(row, text, names, path) for row in rows)
    _refuse_two_labels(rows, entries, path)
    missing = [row.cells for row, entry in zip(rows, entries, strict=True) if row.cells and entry.file is None]
    if missing:
        named = shown([_cell(cells, text, FILE) for cells in missing])
        raise DataError(
            f"{path} names {len(missing)} file{'s' if len(missing) > 1 else ''} not in {names.root}: {named}. "
            f"Paths are relative to {names.root} and written with /."
        )
    if classes is not None:
        _refuse_unknown([entry.label for entry in entries if entry.label is not None], classes, path)
    return Entries(text, entries, cut)


def _entry(row: Row, text: Text, names: Names, path: Path) -> Entry:
    if not row.cells:
        return Entry(row.raw, None, None)
    name, label = _cell(row.cells, text, FILE), _cell(row.cells, text, LABEL).strip()
    if not name.strip():
        raise DataError(f"{path} has no file name in line {row.line}. Is a cell left out?")
    others = tuple(cell for column, cell in zip(text.columns, row.cells, strict=False) if column not in (FILE, LABEL))
    return Entry(row.raw, names.locate(name), None if label in ("", UNLABELED_NAME) else composed(label), others)


def _cell(cells: tuple[str, ...], text: Text, column: str) -> str:
    place = text.columns.index(column)
    return cells[place] if len(cells) > place else ""


def _is_torn(row: Row, text: Text, names: Names, classes: Sequence[str]) -> bool:
    """Whether a row without a line end cannot be trusted to be whole: "owl" may have been going to be "owlet"."""
    if not row.cells or is_open(row.raw) or len(row.cells) < len(text.columns):
        return True
    label = composed(_cell(row.cells, text, LABEL).strip())
    begun = any(name != label and name.startswith(label) for name in classes)
    return begun or not label or names.locate(_cell(row.cells, text, FILE)) is None


def _refuse_two_labels(rows: Sequence[Row], entries: Sequence[Entry], path: Path) -> None:
    first: dict[str, tuple[int, str | None]] = {}
    for row, entry in zip(rows, entries, strict=True):
        if entry.file is None:
            continue
        line, label = first.setdefault(entry.file, (row.line, entry.label))
        if label != entry.label:
            raise DataError(
                f"{path} says {label or 'no label'} for {shown([entry.file])} in line {line} "
                f"and {entry.label or 'no label'} in line {row.line}. Keep one of the two."
            )


def _refuse_unknown(labels: Sequence[str], classes: Sequence[str], table: Path) -> None:
    """Labels that a table holds already must be among the classes: else half of them would never be asked for."""
    counts: dict[str, int] = {}
    for label in labels:
        if label not in classes:
            counts[label] = counts.get(label, 0) + 1
    if counts:
        found = shown([f"{label} ({count:,})" for label, count in sorted(counts.items())])
        raise DataError(
            f"{table} has labels that are not among the classes: {found}. The classes are {shown(classes, limit=20)}. "
            "Name these labels as classes too, correct them in the table, or label into another one: --labels."
        )

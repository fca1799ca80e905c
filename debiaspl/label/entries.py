"""What the rows of labels.csv say: which file, which label. What is not changed keeps every byte it had."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from debiaspl.data.class_names import composed
from debiaspl.data.csv_text import CsvRow, csv_line, is_open
from debiaspl.data.errors import DataError, shown
from debiaspl.data.file_names import FileNames, leaves
from debiaspl.data.label_table import USUAL, Columns, LabelText, match_files, read_text, split_table


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

    text: LabelText
    entries: tuple[Entry, ...]
    cut: str | None
    """A last line that was cut off, and is left out."""


def read_entries(path: Path, names: FileNames, classes: Sequence[str] | None, columns: Columns = USUAL) -> Entries:
    """The table at ``path``, refused where training would refuse it, or where a label is not among ``classes``."""
    text = _text(path, columns)
    rows, cut = list(text.rows), None
    if rows and not rows[-1].raw.endswith(("\n", "\r")) and "\n" not in rows[-1].raw:
        if _is_torn(rows[-1], text, names, classes or ()):
            cut = rows.pop().raw
        else:
            rows[-1] = replace(rows[-1], raw=rows[-1].raw + line_end(text))
    if rows and is_open(rows[-1].raw):
        raise DataError(f"{path} has a quote left open in line {rows[-1].line}. Close it, or remove it.")
    understood = [(row, text.understood(row)) for row in rows]
    match_files(path, (said for _, said in understood if said is not None), names)
    entries = tuple(
        Entry(row.raw, None, None)
        if said is None
        else Entry(row.raw, names.locate(said.name), said.label, _others(row, text))
        for row, said in understood
    )
    if classes is not None:
        _refuse_unknown([entry.label for entry in entries if entry.label is not None], classes, path)
    return Entries(text, entries, cut)


def line_end(text: LabelText) -> str:
    return "\r\n" if text.header.raw.endswith("\r\n") else "\n"


def why_unnameable(file: str) -> str | None:
    """Why a file cannot stand in a table that every reader takes, if so."""
    try:
        file.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8, so labels.csv cannot hold it; rename it"
    return "its name looks like a path out of the folder; rename it" if leaves(file) else None


def _text(path: Path, columns: Columns) -> LabelText:
    """The table; one that is not there, or that was only just begun, is a new one."""
    if path.suffix.lower() == ".json":
        raise DataError(f"answers go into a CSV file, and {path} is JSON. Name another table: --labels.")
    text = read_text(path) if path.exists() else ""
    begun = csv_line(columns.names)
    found = split_table(begun if begun.startswith(text.strip("\ufeff")) else text, path, columns)
    if found.header.raw.endswith(("\n", "\r")):
        return found
    return replace(found, header=replace(found.header, raw=found.header.raw + "\n"))


def _others(row: CsvRow, text: LabelText) -> tuple[str, ...]:
    return tuple(cell for place, cell in enumerate(row.cells) if place not in text.places)


def _is_torn(row: CsvRow, text: LabelText, names: FileNames, classes: Sequence[str]) -> bool:
    """Whether a row without a line end cannot be trusted to be whole: "owl" may have been going to be "owlet"."""
    if row.is_blank or is_open(row.raw) or len(row.cells) < len(text.names):
        return True
    name, label = text.cells(row)
    begun = any(each != composed(label) and each.startswith(composed(label)) for each in classes)
    return begun or not label or names.locate(name) is None


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

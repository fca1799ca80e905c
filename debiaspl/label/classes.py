"""The classes of a labelling session, from the command line."""

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from debiaspl.data.errors import DataError
from debiaspl.data.listing import UNLABELED_NAME, shown


def split_classes(text: str) -> tuple[str, ...]:
    """Names with commas between; one that holds a comma or a line break, or begins with a quote, stands in quotes."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise DataError(
            f"--classes is {text!r}: {error}. Expected names with commas between; a name that holds a comma stands in "
            'quotes, and a quote inside quotes is written twice: \'owl,"heron, grey","the ""big"" one"\'.'
        ) from error
    return checked_classes([name for row in rows for name in row], "--classes")


def read_classes(path: Path) -> tuple[str, ...]:
    """One name per line, taken as it stands: commas and quotes need no care."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(
            f"--classes-file {path} cannot be read: {error.strerror}. Expected a text file, one class per line."
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"--classes-file {path} is not UTF-8. Save it as UTF-8, one class per line.") from error
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return checked_classes([line for line in lines if line.strip()], str(path))


def checked_classes(names: Iterable[str], origin: str) -> tuple[str, ...]:
    """The names as training reads them: without spaces around, composed, two or more, all different."""
    classes = tuple(composed(name.strip()) for name in names)
    broken = [name or "an empty name" for name in classes if name in ("", UNLABELED_NAME) or not _is_utf8(name)]
    if broken:
        raise DataError(
            f"{origin} holds {shown(broken)}. Expected names in UTF-8, none of them empty or {UNLABELED_NAME!r}, "
            "which stands for images without a label."
        )
    twice = sorted({name for name in classes if classes.count(name) > 1}) if len(set(classes)) < len(classes) else []
    if twice:
        raise DataError(f"{origin} names {shown(twice)} more than once. Expected different names.")
    if len(classes) < 2:
        found = f"one class, {shown(classes)}" if classes else "no class"
        raise DataError(f'{origin} names {found}. Expected two or more, with commas between: --classes "owl,heron".')
    return classes


def refuse_unknown(labels: Sequence[str], classes: Sequence[str], table: Path) -> None:
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


def composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _is_utf8(name: str) -> bool:
    # Bytes of the command line that are no UTF-8 come as lone surrogates, which no table could hold.
    return not any("\ud800" <= letter <= "\udfff" for letter in name)

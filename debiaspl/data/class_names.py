"""Class names from the command line, a file or a list: all commands use the same rules."""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from debiaspl.data.csv_text import CsvError, csv_rows, read_text
from debiaspl.data.errors import DataError

UNLABELED_NAME = "unlabeled"
"""A class folder, or a label in a table, with this name (or another spelling of it) means: no label."""
_ALSO_UNLABELED = frozenset(("unlabeled", "unlabelled", "nolabel", "notlabeled", "notlabelled"))
_NO_VALUE = frozenset(("nan", "na", "n/a", "<na>", "none", "null", "nil", "?", "-1", "-", "#n/a"))
"""What spreadsheets and programs write for a missing value, in lower case."""
TYPED = "--classes"


def means_no_label(name: str) -> bool:
    """Whether a name is another spelling of ``unlabeled``, such as ``Unlabelled`` or ``no_label``, and not a class."""
    return re.sub(r"[\W_]+", "", name.casefold()) in _ALSO_UNLABELED


def means_no_value(name: str) -> bool:
    """Whether a label is what programs write where there is none, such as ``NaN``, ``None`` or ``?``."""
    return name.strip().casefold() in _NO_VALUE


def read_class_names(text: str) -> tuple[str, ...]:
    """Parse ``--classes``: names separated by commas, or the path of a file with one name per line.

    A name that contains a comma, or begins with a quote, must be in quotes: ``owl,"heron, grey"``.
    """
    if _is_file(text):
        return class_names_in(Path(text))
    try:
        rows = csv_rows(text, strict=True)
    except CsvError as error:
        raise DataError(
            f"{TYPED} is {text!r}: {error}. Expected names separated by commas. Put a name with a comma in "
            'quotes, and write a quote inside quotes twice: \'owl,"heron, grey","the ""big"" one"\'.'
        ) from error
    names = [name for row in rows for name in row.cells]
    if len(names) == 1 and (Path(text).suffix or Path(text).parent.name):
        raise DataError(
            f"{TYPED} is {text!r}, and there is no such file. Expected names separated by commas, or a file."
        )
    return check_class_names(names, TYPED)


def class_names_in(file: Path) -> tuple[str, ...]:
    """The lines of a text file as they are, without quoting rules. Empty lines are left out."""
    text = read_text(file, "one class per line").removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return check_class_names([line for line in lines if line.strip()], str(file))


def check_class_names(names: Iterable[str], origin: str = "classes", alike: bool = False) -> tuple[str, ...]:
    """The names without surrounding spaces and with composed accents. Raises unless two or more are different.

    Names that differ only in upper and lower case are equal, unless ``alike`` is true: text models and some file
    systems do not distinguish them.
    """
    given = [names] if isinstance(names, str) else list(names)
    strange = [name for name in given if not isinstance(name, str)]
    if isinstance(names, str) or strange:
        found = names if isinstance(names, str) else strange[0]
        raise DataError(f"{origin} has {found!r}, expected a list of names, such as ['river', 'forest'].")
    classes = tuple(composed(name.strip()) for name in given)
    if "" in classes:
        raise DataError(
            f"{origin}: class {classes.index('') + 1} of {len(classes)} has no name. Expected names separated by "
            'single commas: "river,forest,highway".'
        )
    broken = [name for name in classes if means_no_label(name) or not _fits_a_line(name)]
    if broken:
        raise DataError(
            f"{origin} contains {broken[0]!r}. Expected names on one line in UTF-8, none of them {UNLABELED_NAME!r}, "
            "which means no label."
        )
    if len(classes) < 2:
        raise DataError(
            f"{origin} has {f'one class, {classes[0]!r}' if classes else 'no class'}. Expected two or more names, "
            'separated by commas or one per line of a file. For a single class, add a second one, such as "other".'
        )
    seen: set[str] = set()
    for name in classes:
        key = name if alike else name.casefold()
        if key in seen:
            raise DataError(
                f"{origin} has the class {name!r} twice, or only in another case. Expected different names."
            )
        seen.add(key)
    return classes


def composed(name: str) -> str:
    """Combine each letter and its accent into one character; macOS file names have two."""
    return unicodedata.normalize("NFC", name)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # a long list is not a path
        return False


def _fits_a_line(name: str) -> bool:
    # Command line bytes that are not UTF-8 become lone surrogates, which cannot be written to a table.
    return not any(letter in "\r\n" or "\ud800" <= letter <= "\udfff" for letter in name)

"""Class names as they are typed, stand in a file or come in a list: all commands read them by the same rules."""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from debiaspl.data.csv_text import CsvError, csv_rows
from debiaspl.data.errors import DataError

UNLABELED_NAME = "unlabeled"
"""A class folder, or a label in a table, with this name means: no label. So do other spellings of it."""
_ALSO_UNLABELED = frozenset(("unlabeled", "unlabelled", "nolabel", "notlabeled", "notlabelled"))
TYPED = "--classes"


def means_no_label(name: str) -> bool:
    """Whether a name is no class but another spelling of ``unlabeled``, such as ``Unlabelled`` or ``no_label``."""
    return re.sub(r"[\W_]+", "", name.casefold()) in _ALSO_UNLABELED


def read_class_names(text: str) -> tuple[str, ...]:
    """What was typed as ``--classes``: names with commas between, or the path of a file with one name per line.

    A name that contains a comma, or begins with a quote, stands in quotes: ``owl,"heron, grey"``.
    """
    if _is_file(text):
        return class_names_in(Path(text))
    try:
        rows = csv_rows(text, strict=True)
    except CsvError as error:
        raise DataError(
            f"{TYPED} is {text!r}: {error}. Expected names with commas between; a name that contains a comma stands in "
            'quotes, and a quote inside quotes is written twice: \'owl,"heron, grey","the ""big"" one"\'.'
        ) from error
    names = [name for row in rows for name in row.cells]
    if len(names) == 1 and (Path(text).suffix or Path(text).parent.name):
        raise DataError(
            f"{TYPED} is {text!r}, and there is no such file. Expected names with commas between, or a file."
        )
    return check_class_names(names, TYPED)


def class_names_in(file: Path) -> tuple[str, ...]:
    """The lines of a text file, taken as they are: commas and quotes need no care. Empty lines are left out."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(
            f"{file} cannot be read: {error.strerror}. Expected a text file, one class per line."
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 (byte {error.start}). Save it as UTF-8, one class per line.") from error
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return check_class_names([line for line in lines if line.strip()], str(file))


def check_class_names(names: Iterable[str], origin: str = "classes", alike: bool = False) -> tuple[str, ...]:
    """The names without spaces around them and with composed accents; two or more, all different.

    Capital letters do not make another class, unless ``alike`` names are allowed: a text model reads both alike, and so
    do some file systems.
    """
    if isinstance(names, str):
        raise DataError(f"{origin} is the text {names!r}, expected a list of names, such as ['river', 'forest'].")
    given = list(names)
    strange = [name for name in given if not isinstance(name, str)]
    if strange:
        raise DataError(f"{origin} contains {strange[0]!r}, expected names as text, such as ['river', 'forest'].")
    classes = tuple(composed(name.strip()) for name in given)
    if "" in classes:
        raise DataError(
            f"{origin}: class {classes.index('') + 1} of {len(classes)} has no name. Expected names with single commas "
            'between: "river,forest,highway".'
        )
    broken = [name for name in classes if means_no_label(name) or not _fits_a_line(name)]
    if broken:
        raise DataError(
            f"{origin} contains {broken[0]!r}. Expected names in one line of UTF-8, none of them {UNLABELED_NAME!r}, "
            "which stands for images without a label."
        )
    if len(classes) < 2:
        raise DataError(
            f"{origin} has {f'one class, {classes[0]!r}' if classes else 'no class'}. Expected two or more names with "
            'commas between, or a file with one per line: a single class has nothing to be told from; add "other".'
        )
    seen: dict[str, str] = {}
    for name in classes:
        key = name if alike else name.casefold()
        if key in seen:
            also = "" if seen[key] == name else f" (also as {seen[key]!r})"
            raise DataError(f"{origin} has the class {name!r} twice{also}. Expected different names.")
        seen[key] = name
    return classes


def composed(name: str) -> str:
    """With each accent on its letter; macOS writes the two as two characters, most keyboards as one."""
    return unicodedata.normalize("NFC", name)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # a long list is no path
        return False


def _fits_a_line(name: str) -> bool:
    # Bytes of the command line that are no UTF-8 come as lone surrogates, which no table could hold.
    return not any(letter in "\r\n" or "\ud800" <= letter <= "\udfff" for letter in name)

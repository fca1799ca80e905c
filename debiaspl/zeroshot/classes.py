"""The classes that a zero-shot model is asked about: names in plain words."""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from debiaspl.data import DataError
from debiaspl.data.listing import UNLABELED_NAME

_BREAKS = re.compile("[\r\n\ud800-\udfff]")
"""Line breaks, and what stands for bytes that are no UTF-8."""


def read_classes(text: str) -> tuple[str, ...]:
    """Names separated by commas, or the path of a file with one name a line."""
    place = Path(text)
    try:
        is_file = "\n" not in text and place.is_file()
    except OSError:  # a long list is no path
        is_file = False
    if not is_file:
        return check_classes(text.split(","))
    try:
        lines = place.read_bytes().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{place} is not UTF-8 (byte {error.start}). Save it as UTF-8, one class a line.") from error
    return check_classes([line for line in lines if line.strip()])


def check_classes(names: Sequence[str]) -> tuple[str, ...]:
    """The names without spaces around them; two or more, all different."""
    if isinstance(names, str):
        raise DataError(f"classes are the text {names!r}, expected a list of names, such as ['river', 'forest'].")
    classes = tuple(unicodedata.normalize("NFC", name.strip()) for name in names)
    if "" in classes:
        raise DataError(
            f"class {classes.index('') + 1} of {len(classes)} has no name. Expected names separated by single commas: "
            '"river,forest,highway".'
        )
    # A student is told its labels in a table, which has no room for such a class.
    broken = [name for name in classes if name == UNLABELED_NAME or _BREAKS.search(name)]
    if broken:
        raise DataError(
            f"a class is called {broken[0]!r}. Expected names in one line of UTF-8, and none of them "
            f"{UNLABELED_NAME!r}, which stands for images without a label."
        )
    if len(classes) < 2:
        raise DataError(
            f"found {len(classes)} class{': ' + classes[0] if classes else 'es'}. Expected two or more, separated by "
            'commas: a single class has nothing to be told from; add one such as "something else".'
        )
    # Capital letters do not make another class: a text model reads both alike, and so do some file systems.
    seen: dict[str, str] = {}
    for name in classes:
        first = seen.setdefault(name.casefold(), name)
        if first is not name:
            also = "" if first == name else f" (also as {first!r})"
            raise DataError(f"the class {name!r} is given twice{also}. Expected different names.")
    return classes

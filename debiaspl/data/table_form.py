"""The layout of a label table. Unusual layouts are accepted if unambiguous, and reported as assumptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from debiaspl.data.csv_text import CsvError, CsvRow, csv_rows
from debiaspl.data.errors import DataError, shown
from debiaspl.data.file_names import EXTENSIONS

FILE, LABEL = "file_name", "label"
FILE_ALSO = frozenset(
    (
        *("filename", "file", "file_path", "filepath", "path", "image", "image_name", "image_file", "image_path"),
        *("img", "photo", "picture"),
    )
)
LABEL_ALSO = frozenset(["class", "class_name", "category", "choice", "labels"])
"""Other names of the two columns in tables of other programs."""
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True)
class Columns:
    """Names of the two relevant columns of a table; None: the default name."""

    file: str | None = None
    """Column of the image; by default ``file_name``."""
    label: str | None = None
    """Column of the class; by default ``label``."""

    @property
    def names(self) -> tuple[str, str]:
        return self.file or FILE, self.label or LABEL


USUAL = Columns()


@dataclass(frozen=True)
class Form:
    """The layout of one table."""

    header: CsvRow
    """Empty if the table has no line of column names."""
    rows: tuple[CsvRow, ...]
    """All other rows, including blank ones."""
    names: tuple[str, ...]
    """Names of all columns."""
    places: tuple[int, int]
    """Numbers of the file column and of the label column."""
    separator: str = ","
    assumed: tuple[str, ...] = ()
    """What is unusual, as text."""


def form_of(text: str, columns: Columns) -> Form:
    """The only layout that fits the text. Raises ValueError with the reason, or CsvError if the text is not CSV."""
    forms: list[Form] = []
    reasons: list[ValueError] = []
    first_line = text.partition("\n")[0]
    for separator in SEPARATORS:
        try:
            forms.append(_form(text, columns, separator))
        except CsvError as error:
            if separator == ",":
                raise
            reasons.append(error)
        except ValueError as error:
            reasons.insert(0 if separator in first_line else len(reasons), error)
    if forms and (len(forms) == 1 or forms[0].separator == ","):
        return forms[0]
    raise reasons[0]


def _form(text: str, columns: Columns, separator: str) -> Form:
    rows = csv_rows(text, separator=separator)
    first = next((number for number, row in enumerate(rows) if not row.is_blank), len(rows))
    header, *others = rows[first:] or [CsvRow("", 1, ())]
    names = tuple(map(_column, header.cells))
    assumed: tuple[str, ...] = () if separator == "," else (f"separated by {SEPARATORS[separator]}",)
    files = _places(names, columns.file, FILE, FILE_ALSO)
    labels = _places(names, columns.label, LABEL, LABEL_ALSO)
    if len(files) == len(labels) == 1:
        file, label = files[0], labels[0]
        if (names[file], names[label]) != tuple(map(_column, columns.names)):
            assumed += (f"files in the column {names[file]} and labels in {names[label]}",)
        return Form(header, tuple(others), names, (file, label), separator, assumed)
    bare = _without_header(header.cells) if columns == USUAL else None
    if bare is not None:
        assumed += (f"no line of column names; files in column {bare[0] + 1}, labels in column {bare[1] + 1}",)
        nameless = (FILE, LABEL) if bare == (0, 1) else (LABEL, FILE)
        return Form(CsvRow("", 1, ()), tuple(rows), nameless, bare, separator, assumed)
    several = [names[place] for places in (files, labels) if len(places) > 1 for place in places]
    which = f", and {shown(several)} could all be meant" if several else ""
    raise ValueError(f"has the columns {shown(names)}{which}" if names else "is empty")


def _places(names: Sequence[str], typed: str | None, usual: str, also: frozenset[str]) -> list[int]:
    """Numbers of the columns that could be meant."""
    exact = [place for place, name in enumerate(names) if name == _column(typed or usual)]
    if exact or typed:
        return exact
    return [place for place, name in enumerate(names) if name.replace(" ", "_").replace("-", "_") in also]


def _without_header(cells: Sequence[str]) -> tuple[int, int] | None:
    """Places of file and label in a first line that is already a row: two cells, one of them an image."""
    images = [PurePath(cell.strip()).suffix.lower() in EXTENSIONS for cell in cells]
    if len(cells) != 2 or sum(images) != 1 or not all(cell.strip() for cell in cells):
        return None
    return (0, 1) if images[0] else (1, 0)


def _column(name: str) -> str:
    return name.strip().casefold()


def refuse_form(table: object, why: str, columns: Columns) -> DataError:
    """The error for a table with an unknown layout."""
    return DataError(
        f"{table} {why}. Expected a first line with {' and '.join(columns.names)}, separated by commas. For other "
        "names, use --column file=NAME and --column label=NAME."
    )

"""The classes of predictions, and the number of each."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl.predictions.table import PredictionsError, Raw, listed, repeated, rows_named

UNKNOWN = -1
NO_VALUE = ("", "-1", "nan", "None")
"""Values in tables that mean an unknown truth, unless a class has this name."""

Texts = list[str]


def values_of(column: NDArray[Any], what: str, named: Sequence[str] = ()) -> Texts:
    """Class names or class numbers, as text. A whole number in floating point becomes that number, NaN means no value.
    One of the classes that are given, ``named``, may be a negative number."""
    if np.issubdtype(column.dtype, np.number):
        allowed = [float(name) for name in named if name.startswith("-") and name[1:].isdecimal()]
        allowed += [float(UNKNOWN)] if what == "truth" else []
        whole = np.isfinite(column) & (column == np.rint(column)) & ((column >= 0) | np.isin(column, allowed))
        if len(bad := np.flatnonzero(~np.isnan(column) & ~whole)):
            found = f"the {what} in {rows_named(bad.tolist())} is no class number (the first is {column[bad[0]]})"
            raise PredictionsError(f"{found}. Name another column, --column {what}=NAME, or the classes: --classes.")
    if np.issubdtype(column.dtype, np.floating):
        return ["" if value != value else str(int(value)) for value in column.tolist()]
    return [value if isinstance(value, str) else str(value) for value in column.tolist()]


def class_names(
    raw: Raw, columns: int | None, given: Sequence[str] | None, label: Texts | None, truth: Texts | None
) -> tuple[str, ...]:
    """The classes as given, as the file names them, from the number of its scores, or as they occur in it."""
    names = tuple(given) if given is not None else raw.classes
    if names is None and columns is not None:
        names = tuple(str(number) for number in range(columns))
    if names is None:
        names = _seen(label or [], truth)
    if columns is not None and len(names) != columns:
        raise PredictionsError(
            f"there are {len(names):,} class names and {columns:,} columns of scores, expected the same number."
        )
    if twice := repeated(names):
        raise PredictionsError(f"class names occur twice ({listed(twice)}), expected different ones.")
    if len(names) < 2:
        only = f"one class, {names[0]!r}" if names else "no class"
        raise PredictionsError(f"{raw.origin} has {only}, expected two or more. Name those never predicted: --classes.")
    return names


def _seen(label: Texts, truth: Texts | None) -> tuple[str, ...]:
    """Classes that occur, sorted; in numeric order if all are numbers."""
    seen = set(label)
    if truth is not None:
        real = set(truth) - (set(NO_VALUE) - seen)
        if real and not real & seen:
            both = f"truth contains {listed(sorted(real), 3)}, label contains {listed(sorted(seen), 3)}"
            raise PredictionsError(f"{both}, and no class is in both. Use the same names, or --column truth=NAME.")
        seen |= real
    seen -= {""}
    return tuple(sorted(seen, key=int) if all(name.isdecimal() for name in seen) else sorted(seen))


def numbered(values: Texts, classes: tuple[str, ...], what: str) -> NDArray[np.int64]:
    """The index of each value in the list of classes; class numbers are indices if no class has that name."""
    places = {name: place for place, name in enumerate(classes)}
    none = {value: UNKNOWN for value in NO_VALUE if value not in places}
    strange = sorted(set(values) - set(places) - set(none))
    are_places = all(one.isascii() and one.isdecimal() and int(one) < len(classes) for one in strange)
    if strange and are_places and not set(values) & set(places):
        places, strange = {str(place): place for place in range(len(classes))}, []
    if strange:
        todo = "leave that of such images empty" if what == "truth" else "name all of them: --classes"
        found = f"{len(strange):,} classes that are not among the {len(classes):,} of the predictions"
        raise PredictionsError(f"{what} names {found}: {listed(strange, 5)}. Use the same names, or {todo}.")
    lookup = none | places
    return np.fromiter((lookup[value] for value in values), np.int64, len(values))


def parse_classes(text: str) -> tuple[str, ...]:
    """Parse ``--classes``: a number of classes, names separated by commas, or a file of names."""
    if text.isascii() and text.isdecimal():
        return tuple(str(number) for number in range(int(text)))
    from debiaspl.data.text import read_class_names  # imports torch, which other cases do not need

    return read_class_names(text)

"""Converts scikit-learn's y into class numbers, with -1 for no label."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from debiaspl.data.text import means_no_label, means_no_value

UNLABELED_TEXT = ("", "-1")
"""NumPy turns ``["cat", -1]`` into strings."""


@dataclass(frozen=True)
class Labels:
    """``classes[codes]`` are the labels; codes are -1 for no label."""

    classes: NDArray[Any]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, y: Any) -> "Labels":
        if y is None:
            what = "DebiasedClassifier requires y to be passed, but the target y is None"  # scikit-learn's words
            raise ValueError(f"{what}. Rows without a label have -1.")
        given = column_or_1d(_plain(y), warn=True)
        missing = unlabeled(given)
        if _is_binary(given):
            missing = np.zeros_like(missing)
        known = _of_one_type(given[~missing])
        _refuse_no_value(known)
        try:
            if len(known):
                check_classification_targets(known)
            classes, codes_known = np.unique(known, return_inverse=True)
        except TypeError:
            kinds = sorted({type(label).__name__ for label in known})
            raise ValueError(f"y mixes labels of the types {', '.join(kinds)}, expected labels of one type.") from None
        if len(classes) < 2:
            there = f"only one class, {classes.tolist()[0]!r}, has labels" if len(classes) else "no row has a label"
            raise ValueError(f"{there}, expected labels of at least two classes; -1 in y means no label.")
        codes = np.full(len(given), -1, dtype=np.int64)
        codes[~missing] = codes_known
        return cls(classes, codes)


def unlabeled(y: Any) -> NDArray[np.bool_]:
    """Which rows have no label: -1, None, NaN or, among strings, an empty one."""
    y = np.asarray(y)
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError("Input y contains infinity, expected labels, and -1 or NaN for no label.")
    if y.dtype.kind in "biuf":
        return np.asarray(np.isnan(y) | (y == -1), dtype=np.bool_)
    return np.fromiter(map(_is_missing, y.tolist()), dtype=bool, count=len(y))


def _of_one_type(known: NDArray[Any]) -> NDArray[Any]:
    """Objects as an array of their own type: None among numbers makes all of them objects."""
    if known.dtype.kind == "O":
        for kinds in ((str,), (bool, np.bool_), (int, np.integer), (int, float, np.integer, np.floating)):
            if all(isinstance(label, kinds) and (bool in kinds or not isinstance(label, bool)) for label in known):
                return np.array(known.tolist())
    return known


def _refuse_no_value(known: NDArray[Any]) -> None:
    """Raise for strings that usually mean "no label": each would be learned as a class."""
    if known.dtype.kind in "US":
        named = sorted({name for name in known.astype(str).tolist() if means_no_value(name) or means_no_label(name)})
        if named:
            found = f"y contains {', '.join(map(repr, named))}, expected classes, and -1 or None for no label"
            raise ValueError(f"{found}. If it is a class, give it another name.")


def _is_missing(label: Any) -> bool:
    if isinstance(label, str):
        return label in UNLABELED_TEXT
    return bool(label is None or label != label or label == -1)


def _is_binary(given: NDArray[Any]) -> bool:
    """Whether y contains only -1 and 1, scikit-learn's binary classes: a single class could not be learned anyway."""
    return given.dtype.kind in "if" and np.unique(given).tolist() == [-1, 1]


def _plain(y: Any) -> Any:
    """Replace pandas' NA, which cannot be compared, by None."""
    if hasattr(y, "isna") and hasattr(y, "to_numpy"):
        absent = np.asarray(y.isna())
        if absent.any():
            plain = y.to_numpy(dtype=object, copy=True)
            plain[absent] = None
            return plain
    return y

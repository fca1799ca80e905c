"""Converts scikit-learn's y into class numbers, with -1 for no label."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from debiaspl.data.text import means_no_label, means_no_value

NO_LABEL = (-1, "", "-1", None)
"""NumPy turns ``["cat", -1]`` into strings."""


def classes_and_codes(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes, and the number of each label among them; -1 for no label."""
    if y is None:
        what = "DebiasedClassifier requires y to be passed, but the target y is None"  # scikit-learn's words
        raise ValueError(f"{what}. Rows without a label have -1.")
    given = column_or_1d(_plain(y), warn=True)
    missing = unlabeled(given)
    if given.dtype.kind in "if" and np.unique(given).tolist() == [-1, 1]:  # scikit-learn's binary classes
        missing[:] = False
    labels = _of_one_type(given[~missing])
    if len(labels):
        check_classification_targets(labels)
    classes, numbers = np.unique(labels, return_inverse=True)
    names = classes.tolist() if classes.dtype.kind == "U" else []
    if named := [name for name in names if means_no_value(name) or means_no_label(name)]:
        there = f"y contains {', '.join(map(repr, named))}, expected classes, and -1 or None for no label"
        raise ValueError(f"{there}. If it is a class, give it another name.")
    if len(classes) < 2:
        there = f"only one class, {classes.tolist()[0]!r}, has labels" if len(classes) else "no row has a label"
        raise ValueError(f"{there}, expected labels of at least two classes; -1 in y means no label.")
    codes = np.full(len(given), -1, dtype=np.int64)
    codes[~missing] = numbers
    return classes, codes


def unlabeled(y: Any) -> NDArray[np.bool_]:
    """Which rows have no label: -1, None, NaN or, among strings, an empty one."""
    y = np.asarray(_plain(y))
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError("Input y contains infinity, expected labels, and -1 or NaN for no label.")
    if y.dtype.kind in "biuf":
        return np.asarray(np.isnan(y) | (y == -1), dtype=np.bool_)
    return np.array([label in NO_LABEL or label != label for label in y.tolist()], dtype=np.bool_)


def _of_one_type(labels: NDArray[Any]) -> NDArray[Any]:
    """Objects as an array of their own type: None among numbers makes all of them objects."""
    if labels.dtype.kind != "O":
        return labels
    types = {type(label).__name__: np.asarray(label).dtype.kind for label in labels}
    if len(set(types.values())) > 1 and not set(types.values()) <= set("iuf"):
        raise ValueError(f"y mixes labels of the types {', '.join(sorted(types))}, expected labels of one type.")
    return np.array(labels.tolist())


def _plain(y: Any) -> Any:
    """pandas' NA, which cannot be compared, as None."""
    if hasattr(y, "isna") and np.asarray(y.isna()).any():
        return y.to_numpy(dtype=object, na_value=None)
    return y

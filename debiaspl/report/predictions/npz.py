"""``.npz``: arrays by name. Nothing in the file is executed: arrays of Python objects are refused."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl.report.predictions.errors import PredictionsError, listed
from debiaspl.report.predictions.raw import MATRICES, Names, Raw


def read_npz(path: Path, names: Names) -> Raw:
    """Read ``label``, ``truth``, ``confidence``, ``file_name``, ``classes`` and matrices, or what ``names`` says."""
    arrays = _arrays(path)
    classes = arrays.pop("classes", None)
    if classes is not None and classes.ndim != 1:
        raise PredictionsError(f"the array 'classes' has shape {classes.shape}, expected one name per class.")
    matrices = {}
    for matrix in MATRICES:
        asked: str | None = getattr(names, matrix)
        if asked is not None and asked not in arrays:
            raise PredictionsError(f"{path} has no array {asked!r} for the {matrix}. It has {listed(arrays)}.")
        if (asked or matrix) in arrays:
            matrices[matrix] = arrays.pop(asked or matrix)
    fields = {name: values for name, values in arrays.items() if values.ndim == 1}
    _refuse_unnamed(path, arrays, matrices)
    return Raw(str(path), fields, matrices, None if classes is None else tuple(map(str, classes.tolist())))


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise PredictionsError(
            f"{path} cannot be read as .npz: {error}. Write it with numpy.savez(path, label=..., probabilities=...); "
            "text as an array of strings, not of objects."
        ) from error


def _refuse_unnamed(path: Path, arrays: dict[str, NDArray[Any]], matrices: dict[str, NDArray[Any]]) -> None:
    """A matrix under another name is surely meant; which kind it is cannot be guessed."""
    others = [name for name, values in arrays.items() if values.ndim == 2]
    if others and not {"probabilities", "logits"} & set(matrices) and "label" not in arrays:
        raise PredictionsError(
            f"{path} has a matrix {others[0]!r}, expected 'probabilities' or 'logits'. Say which it is: "
            f"--probabilities {others[0]} or --logits {others[0]}."
        )

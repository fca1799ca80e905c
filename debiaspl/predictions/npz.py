"""Reads ``.npz`` and ``.npy`` arrays. No code in the file is executed: arrays of Python objects raise an error."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl.predictions.table import (
    MATRICES,
    Names,
    PredictionsError,
    Raw,
    reason,
    refuse_larger_than_memory,
    refuse_other_kinds,
)


def read_npz(path: Path, names: Names) -> Raw:
    """Read ``label``, ``truth``, ``confidence``, ``file_name``, ``classes`` and matrices, or those in ``names``."""
    arrays = arrays_in(path)
    classes = arrays.pop("classes", None)
    if classes is not None and classes.ndim != 1:
        raise PredictionsError(f"the array 'classes' has shape {classes.shape}, expected one name per class.")
    refuse_other_kinds("classes", classes)
    matrices = {}
    for matrix in MATRICES:
        if (values := arrays.pop(names.get(matrix, matrix), None)) is not None:
            matrices[matrix] = values
            if values.ndim == 0:
                raise PredictionsError(f"{path} has a single value for the {matrix}, expected one row per image.")
    fields = {name: values for name, values in arrays.items() if values.ndim == 1}
    others = [name for name, values in arrays.items() if values.ndim == 2]
    if others and not matrices and "label" not in arrays:
        kinds = f"--column probabilities={others[0]} or --column logits={others[0]}"
        raise PredictionsError(f"{path} has a matrix {others[0]!r}. Name its kind: {kinds}.")
    return Raw(str(path), fields, matrices, None if classes is None else tuple(map(str, classes.tolist())))


def arrays_in(path: Path) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    name = None
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("it is not an archive of arrays, or it is truncated")
        with zipfile.ZipFile(path) as pack:
            refuse_larger_than_memory(path, sum(member.file_size for member in pack.infolist()))
        with np.load(path, allow_pickle=False) as stored:
            for name in stored.files:
                arrays[name] = stored[name]
                if not isinstance(arrays[name], np.ndarray):
                    raise ValueError("it is not an array")
    except PredictionsError:
        raise
    except Exception as error:  # zipfile, its compressions and numpy raise a dozen kinds for damaged files
        # numpy's own message about Python objects would advise to run them.
        why = "it contains Python objects" if "allow_pickle" in str(error) else reason(error)
        where = "" if name is None else f"{name!r}: "
        raise PredictionsError(f"{path} cannot be read as .npz: {where}{why}. Write it with numpy.savez.") from error
    return arrays


def load_npy(path: Path, what: str) -> NDArray[Any]:
    try:
        refuse_larger_than_memory(path, path.stat().st_size)
        with path.open("rb") as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    except (PredictionsError, OSError):
        raise
    except Exception as error:  # as above
        found = f"the {what} in {path} are not a complete .npy file"
        raise PredictionsError(f"{found}. Write it with numpy.save.") from error

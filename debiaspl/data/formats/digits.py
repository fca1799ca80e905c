"""The digits of scikit-learn (Alpaydin and Kaynak 1998): a set that needs no download."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from debiaspl.data.formats.definition import TrainTest
from debiaspl.data.images import ImageSet
from debiaspl.data.splits import held_out


def digits() -> TrainTest:
    """1,797 handwritten digits, 8x8, grey, which are part of scikit-learn; 50 of each class are the test set.

    There is no official test set: the held-out images are the same for every seed of every experiment.
    """
    *pixels, labels = _columns()
    # The authors' pixels are counts from 0 to 16; scaled to the range of a byte.
    grey = np.rint(np.stack(pixels, 1).reshape(-1, 1, 8, 8) * (255 / 16)).astype(np.uint8)
    everything = ImageSet(
        images=torch.from_numpy(grey),
        labels=torch.from_numpy(labels.astype(np.int64)),
        classes=tuple(str(digit) for digit in range(10)),
    )
    train, test = held_out(everything.labels, per_class=50, seed=0)
    return TrainTest(everything.select(train), everything.select(test))


def _columns() -> NDArray[np.float64]:
    """(65, N): the pixels, and the label.

    From the file inside scikit-learn that its load_digits reads. Importing load_digits, and scipy's statistics with it,
    would take longer than everything else before the first step.
    """
    found = find_spec("sklearn")
    for place in (found and found.submodule_search_locations) or ():
        file = Path(place) / "datasets" / "data" / "digits.csv.gz"
        if file.is_file():
            return _read(file)
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("the digits come with scikit-learn: pip install 'debiaspl[digits]'") from error
    pixels, labels = load_digits(return_X_y=True)
    return np.vstack((pixels.T, labels))


@cache
def _read(file: Path) -> NDArray[np.float64]:
    """Once in a process: a program that trains several short runs would spend a fifth of its time here."""
    found: NDArray[np.float64] = np.loadtxt(file, delimiter=",", unpack=True)
    found.flags.writeable = False
    return found

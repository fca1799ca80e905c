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


@cache  # a program that trains several short runs would spend a fifth of its time here
def _columns() -> NDArray[np.float64]:
    """(65, N): the pixels, and the label.

    From the file inside scikit-learn that its load_digits reads. Importing load_digits, and scipy's statistics with it,
    would take longer than everything else before the first step.
    """
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise ImportError("the digits come with scikit-learn: pip install 'debiaspl[digits]'")
    file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    columns: NDArray[np.float64] = np.loadtxt(file, delimiter=",", unpack=True)
    columns.flags.writeable = False
    return columns

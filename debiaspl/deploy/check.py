"""Compares an exported file with its model, on images of many sizes and on real photos."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from debiaspl.data.decode import BadImage, decode
from debiaspl.data.listing import list_images
from debiaspl.deploy.saved import SavedModel
from debiaspl.training import RunError

TOLERANCE = 1e-4
"""Largest accepted difference between two probabilities."""
PHOTOS = 64
"""Number of real photos that are compared, from a larger folder."""

Probabilities = Callable[[NDArray[np.uint8]], Any]
"""From images (N, H, W, C) to the file's probabilities, (N, classes)."""


class Checked(NamedTuple):
    """The largest differences found."""

    made: float
    """On images of noise, of the model's own size and of others, one and several at a time."""
    photos: int = 0
    """Number of real photos."""
    real: float = 0.0
    """On real photos."""
    as_predicted: float = 0.0
    """Between the file and ``debiaspl predict``, which reads large JPEGs at a smaller scale, as in training."""


def check(model: SavedModel, said: Probabilities, photos: Sequence[Path] = ()) -> Checked:
    """Compare the model and the file, and raise if they differ."""
    made = max(_apart(said(pictures), _expected(model, pictures)) for pictures in _noise(model))
    real = as_predicted = 0.0
    looked_at = 0
    for path in photos:
        try:
            picture = decode(path, None, model.channels)
        except BadImage:
            continue
        looked_at += 1
        pictures = picture.permute(1, 2, 0)[None].numpy()
        found = said(pictures)
        real = max(real, _apart(found, _expected(model, pictures)))
        as_predicted = max(as_predicted, _apart(found, model.probabilities(model.read(path)[None])))
    checked = Checked(made, looked_at, real, as_predicted)
    if not max(made, real) <= TOLERANCE:
        raise RunError(
            f"the exported file and PyTorch differ by {max(made, real):.2g} in a probability, expected at most "
            f"{TOLERANCE:g}. It was not written. Please report this with the versions of torch, onnxruntime and Pillow."
        )
    return checked


def some_photos(folder: Path) -> list[Path]:
    """Evenly spaced photos of a folder."""
    files = list_images(folder).files
    count = min(PHOTOS, len(files))
    return [folder / files[number * len(files) // count] for number in range(count)]


def _noise(model: SavedModel) -> Iterator[NDArray[np.uint8]]:
    random = np.random.default_rng(0)
    height, width = model.size
    for shape in (
        (1, height, width),
        (5, height, width),
        (2, 2 * height + 5, 3 * width + 1),
        (1, 4 * height + 3, width + 2),
        (3, max(1, height // 2), max(1, width // 3)),
    ):
        # Coarse spots over fine noise: images with different predictions, and with every grey value.
        spots = random.integers(0, 200, (shape[0], -(-shape[1] // 8), -(-shape[2] // 8), model.channels))
        large = spots.repeat(8, 1).repeat(8, 2)[:, : shape[1], : shape[2]]
        yield (large + random.integers(0, 56, large.shape)).astype(np.uint8)


def _expected(model: SavedModel, pictures: NDArray[np.uint8]) -> Tensor:
    """The model's probabilities for the images, read from a file as in training."""
    return model.probabilities(torch.stack([model.read(_as_file(picture)) for picture in pictures]))


def _as_file(picture: NDArray[np.uint8]) -> bytes:
    """PPM or PGM, the simplest formats."""
    height, width, channels = picture.shape
    return b"P%d\n%d %d\n255\n" % (6 if channels == 3 else 5, width, height) + picture.tobytes()


def _apart(found: Any, expected: Tensor) -> float:
    apart = float((torch.as_tensor(np.asarray(found)) - expected).abs().max())
    return math.inf if math.isnan(apart) else apart  # Python's max would ignore a NaN

"""STL-10 (Coates, Ng and Lee 2011): 96x96 colour images as raw bytes; 5,000 labeled, 8,000 test, 100,000 unlabeled."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from debiaspl.data.errors import damaged
from debiaspl.data.formats.definition import KnownSet, Source, TrainTest
from debiaspl.data.images import UNLABELED, ImageSet

SIDE = 96
_CHUNK = 1000


def read(place: Path, train: int = 5_000, test: int = 8_000, unlabeled: int = 100_000) -> TrainTest:
    """All three parts; the arguments are the numbers of images. The unlabeled ones alone take 2.8 GB."""
    classes = _classes(place)
    labeled = _labeled(place, "train", train, classes), _labeled(place, "test", test, classes)
    return TrainTest(*labeled, _unlabeled(place, unlabeled, classes))


def _classes(place: Path) -> tuple[str, ...]:
    file = _sized(place, "class_names.txt", None)
    names = tuple(file.read_bytes().decode("utf-8", "replace").split())
    if len(names) != 10 or len(set(names)) != 10:
        raise damaged(file, f"it has {len(set(names))} names", "10 class names", place, "stl10")
    return names


def _labeled(place: Path, part: str, count: int, classes: tuple[str, ...]) -> ImageSet:
    file = _sized(place, f"{part}_y.bin", count)
    labels = np.frombuffer(file.read_bytes(), dtype=np.uint8).astype(np.int64) - 1
    if labels.min() < 0 or labels.max() > 9:
        found = f"its labels run from {labels.min() + 1} to {labels.max() + 1}"
        raise damaged(file, found, "1 to 10", place, "stl10")
    return ImageSet(_pixels(place, part, count), torch.from_numpy(labels), classes, _ids(part, count))


def _unlabeled(place: Path, count: int, classes: tuple[str, ...]) -> ImageSet:
    nothing = torch.full((count,), UNLABELED, dtype=torch.int64)
    return ImageSet(_pixels(place, "unlabeled", count), nothing, classes, _ids("unlabeled", count))


def _pixels(place: Path, part: str, count: int) -> Tensor:
    file = _sized(place, f"{part}_X.bin", count * 3 * SIDE * SIDE)
    stored = np.memmap(file, dtype=np.uint8, mode="r", shape=(count, 3, SIDE, SIDE))
    images = np.empty((count, 3, SIDE, SIDE), dtype=np.uint8)
    for start in range(0, count, _CHUNK):
        # The authors store each plane column by column.
        images[start : start + _CHUNK] = stored[start : start + _CHUNK].transpose(0, 1, 3, 2)
    return torch.from_numpy(images)


def _ids(part: str, count: int) -> tuple[str, ...]:
    return tuple(f"{part}/{position}" for position in range(count))


def _sized(place: Path, name: str, size: int | None) -> Path:
    file = place / name
    if not file.is_file():
        raise damaged(place, f"{name} missing", "the six official files", place, "stl10")
    if size is not None and file.stat().st_size != size:
        raise damaged(file, f"it has {file.stat().st_size:,} bytes", f"{size:,}", place, "stl10")
    return file


STL10 = KnownSet(
    name="stl10",
    read=read,
    places=("stl10_binary",),
    signs=("train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin", "unlabeled_X.bin"),
    sources=(Source("http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz", "91f7769df0f17e558f3565bffb0c7dfb"),),
    target="stl10_binary",
    inside="stl10_binary",
)

"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009): pickled batches of 32x32 colour images."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from debiaspl.data.errors import DataError, again, damaged
from debiaspl.data.formats.definition import KnownSet, Source, TrainTest
from debiaspl.data.images import ImageSet
from debiaspl.data.unpickle import unpickle

SIDE = 32
_Pickles = Mapping[str, dict[bytes, Any]]


@dataclass(frozen=True)
class CifarLayout:
    """The files of a CIFAR set and their contents."""

    name: str
    train: Mapping[str, int]
    """Batches of the training set, in order, with their numbers of images."""
    test: Mapping[str, int]
    meta: str
    """The file with the class names."""
    classes: int
    labels_key: bytes
    classes_key: bytes

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.train, *self.test, self.meta)


def read(layout: CifarLayout, place: Path) -> TrainTest:
    """The set from its folder."""
    if missing := [name for name in layout.files if not (place / name).is_file()]:
        raise damaged(place, f"{', '.join(missing)} missing", f"{len(layout.files)} files", place, layout.name)
    try:
        pickles = {name: unpickle((place / name).read_bytes(), place / name) for name in layout.files}
    except DataError as error:
        raise DataError(f"{error} {again(place, layout.name)}") from error
    names: Any = pickles[layout.meta].get(layout.classes_key)
    if not _is_list_of(names, layout.classes, (bytes, str)):
        raise damaged(place / layout.meta, "no class names", f"{layout.classes} names", place, layout.name)
    classes = tuple(map(_text, names))
    train, test = (_images(layout, place, batches, pickles, classes) for batches in (layout.train, layout.test))
    return TrainTest(train, test)


def _images(
    layout: CifarLayout, place: Path, batches: Mapping[str, int], pickles: _Pickles, classes: tuple[str, ...]
) -> ImageSet:
    images = np.empty((sum(batches.values()), 3, SIDE, SIDE), dtype=np.uint8)
    labels: list[int] = []
    ids: list[str] = []
    for name, count in batches.items():
        batch: dict[bytes, Any] = pickles[name]
        data, own, files = batch.get(b"data"), batch.get(layout.labels_key) or [], batch.get(b"filenames") or []
        if not isinstance(data, np.ndarray) or data.shape != (count, 3 * SIDE * SIDE):
            shape = getattr(data, "shape", type(data).__name__)
            expected = f"an array of shape {(count, 3 * SIDE * SIDE)}"
            raise damaged(place / name, f"its data are {shape}", expected, place, layout.name)
        if not _is_list_of(own, count, (int,)) or min(own) < 0 or max(own) >= layout.classes:
            raise damaged(place / name, "its labels", f"{count} of 0 to {layout.classes - 1}", place, layout.name)
        if not _is_list_of(files, count, (bytes, str)):
            raise damaged(place / name, "its filenames", f"{count} names", place, layout.name)
        # Each row is an image: its red, green and blue plane, each row by row.
        images[len(labels) : len(labels) + count] = data.reshape(count, 3, SIDE, SIDE)
        labels += own
        ids += map(_text, files)
    return ImageSet(torch.from_numpy(images), torch.tensor(labels, dtype=torch.int64), classes, tuple(ids))


def _is_list_of(value: Any, count: int, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, list) and len(value) == count and all(type(item) in kinds for item in value)


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


CIFAR10_LAYOUT = CifarLayout(
    "cifar10",
    train={f"data_batch_{number}": 10_000 for number in range(1, 6)},
    test={"test_batch": 10_000},
    meta="batches.meta",
    classes=10,
    labels_key=b"labels",
    classes_key=b"label_names",
)
CIFAR100_LAYOUT = CifarLayout(
    "cifar100", {"train": 50_000}, {"test": 10_000}, "meta", 100, b"fine_labels", b"fine_label_names"
)


def _known(layout: CifarLayout, folder: str, archive: str, md5: str) -> KnownSet:
    source = Source(f"https://www.cs.toronto.edu/~kriz/{archive}", md5)
    return KnownSet(
        layout.name, partial(read, layout), (folder,), layout.files, (source,), target=folder, inside=folder
    )


CIFAR10 = _known(CIFAR10_LAYOUT, "cifar-10-batches-py", "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a")
CIFAR100 = _known(CIFAR100_LAYOUT, "cifar-100-python", "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85")

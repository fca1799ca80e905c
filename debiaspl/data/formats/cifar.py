"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009): pickled batches of 32x32 colour images, in a folder or a .tar.gz."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from debiaspl.data.errors import DataError, again, damaged
from debiaspl.data.formats.archive import read_members
from debiaspl.data.formats.definition import KnownSet, Source, TrainTest
from debiaspl.data.images import ImageSet
from debiaspl.data.unpickle import unpickle

SIDE = 32


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


_Pickles = Mapping[str, dict[bytes, Any]]


def read(layout: CifarLayout, place: Path) -> TrainTest:
    """The set from its folder, or from its archive in place."""
    try:
        pickles = {name: unpickle(content, place / name) for name, content in _contents(layout, place)}
    except DataError as error:
        raise DataError(f"{error} {again(place, layout.name)}") from error
    missing = [name for name in layout.files if name not in pickles]
    if missing:
        raise damaged(place, f"{', '.join(missing)} missing", f"{len(layout.files)} files", place, layout.name)
    classes = _classes(layout, place, pickles[layout.meta])
    train, test = (_images(layout, place, batches, pickles, classes) for batches in (layout.train, layout.test))
    return TrainTest(train, test)


def _contents(layout: CifarLayout, place: Path) -> Iterator[tuple[str, bytes]]:
    if place.is_file():
        yield from read_members(place, layout.files)
    else:
        for name in layout.files:
            if (place / name).is_file():
                yield name, (place / name).read_bytes()


def _classes(layout: CifarLayout, place: Path, meta: dict[bytes, Any]) -> tuple[str, ...]:
    names: Any = meta.get(layout.classes_key)
    if not _is_list_of(names, layout.classes, (bytes, str)):
        expected = f"{layout.classes} class names under {layout.classes_key.decode()!r}"
        raise damaged(place / layout.meta, f"it contains {_kind(names)} there", expected, place, layout.name)
    return tuple(_text(name) for name in names)


def _images(
    layout: CifarLayout, place: Path, batches: Mapping[str, int], pickles: _Pickles, classes: tuple[str, ...]
) -> ImageSet:
    images = np.empty((sum(batches.values()), 3, SIDE, SIDE), dtype=np.uint8)
    labels: list[int] = []
    ids: list[str] = []
    for name, count in batches.items():
        batch = pickles[name]
        _check(layout, place, name, count, batch)
        # Each row is an image: its red, green and blue plane, each row by row.
        images[len(labels) : len(labels) + count] = batch[b"data"].reshape(count, 3, SIDE, SIDE)
        labels += batch[layout.labels_key]
        ids += [_text(file) for file in batch[b"filenames"]]
    return ImageSet(torch.from_numpy(images), torch.tensor(labels, dtype=torch.int64), classes, tuple(ids))


def _check(layout: CifarLayout, place: Path, name: str, count: int, batch: dict[bytes, Any]) -> None:
    def wrong(found: str, expected: str) -> DataError:
        return damaged(place / name, found, expected, place, layout.name)

    data: Any = batch.get(b"data")
    labels: Any = batch.get(layout.labels_key)
    files: Any = batch.get(b"filenames")
    if not isinstance(data, np.ndarray) or data.shape != (count, 3 * SIDE * SIDE):
        raise wrong(f"its data are {_kind(data)}", f"an array of shape {(count, 3 * SIDE * SIDE)}")
    if not _is_list_of(labels, count, (int,)):
        raise wrong(f"its labels are {_kind(labels)}", f"{count} numbers under {layout.labels_key.decode()!r}")
    if min(labels) < 0 or max(labels) >= layout.classes:
        raise wrong(f"its labels run from {min(labels)} to {max(labels)}", f"0 to {layout.classes - 1}")
    if not _is_list_of(files, count, (bytes, str)):
        raise wrong(f"its filenames are {_kind(files)}", f"{count} names")


def _is_list_of(value: object, count: int, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, list) and len(value) == count and all(type(item) in kinds for item in value)


def _kind(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    return f"a list of {len(value)}" if isinstance(value, list) else f"of type {type(value).__name__}"


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


CIFAR10_LAYOUT = CifarLayout(
    name="cifar10",
    train={f"data_batch_{number}": 10_000 for number in range(1, 6)},
    test={"test_batch": 10_000},
    meta="batches.meta",
    classes=10,
    labels_key=b"labels",
    classes_key=b"label_names",
)
CIFAR100_LAYOUT = CifarLayout(
    name="cifar100",
    train={"train": 50_000},
    test={"test": 10_000},
    meta="meta",
    classes=100,
    labels_key=b"fine_labels",
    classes_key=b"fine_label_names",
)


def _known(layout: CifarLayout, folder: str, archive: str, md5: str) -> KnownSet:
    return KnownSet(
        name=layout.name,
        read=partial(read, layout),
        places=(folder, archive),
        signs=layout.files,
        sources=(Source(f"https://www.cs.toronto.edu/~kriz/{archive}", md5),),
        target=folder,
        inside=folder,
    )


CIFAR10 = _known(CIFAR10_LAYOUT, "cifar-10-batches-py", "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a")
CIFAR100 = _known(CIFAR100_LAYOUT, "cifar-100-python", "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85")

"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009): pickled batches of 32x32 colour images, read without running code.

A pickle is a program: it can name any function and call it. The official batches name three things, which always mean
"an array of bytes". Classes of this module replace them, so that the file can call neither NumPy nor anything else.
"""

import io
import pickle
import pickletools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from debiaspl.data.formats import KnownSet, Source, damaged
from debiaspl.data.images import ImageSet, TrainTest
from debiaspl.data.text import DataError

MOST_CONTAINERS = 1000
"""Lists, tuples, dictionaries and calls in a file; the official ones have fewer than 30. Python crashes on objects that
are nested a hundred thousand deep."""
_CONTAINERS = {
    *("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "LIST", "EMPTY_LIST", "DICT", "EMPTY_DICT", "EMPTY_SET", "FROZENSET"),
    *("REDUCE", "BUILD", "NEWOBJ", "NEWOBJ_EX", "OBJ", "INST"),
}


@dataclass(frozen=True)
class CifarLayout:
    """The files of a CIFAR set and their contents."""

    train: Mapping[str, int]
    """Batches of the training set, in order, with their numbers of images."""
    test: Mapping[str, int]
    meta: str
    classes: int
    labels_key: bytes
    classes_key: bytes

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.train, *self.test, self.meta)


def read_cifar(layout: CifarLayout, place: Path) -> TrainTest:
    """The set from its folder."""
    if missing := [name for name in layout.files if not (place / name).is_file()]:
        raise damaged(place, f"{', '.join(missing)} missing", f"{len(layout.files)} files")
    pickles = {name: unpickle((place / name).read_bytes(), place / name) for name in layout.files}
    names: Any = pickles[layout.meta].get(layout.classes_key)
    if not _is_list_of(names, layout.classes, (bytes, str)):
        raise damaged(place / layout.meta, "no class names", f"{layout.classes} names")
    classes = tuple(map(_text, names))

    def images(batches: Mapping[str, int]) -> ImageSet:
        pixels = np.empty((sum(batches.values()), 3, 32, 32), dtype=np.uint8)
        labels: list[int] = []
        ids: list[str] = []
        for name, count in batches.items():
            batch = pickles[name]
            data, own, files = batch.get(b"data"), batch.get(layout.labels_key) or [], batch.get(b"filenames") or []
            if not isinstance(data, np.ndarray) or data.shape != (count, 3072):
                raise damaged(place / name, "its data", f"an array of shape {(count, 3072)}")
            if not _is_list_of(own, count, (int,)) or min(own) < 0 or max(own) >= layout.classes:
                raise damaged(place / name, "its labels", f"{count} of 0 to {layout.classes - 1}")
            if not _is_list_of(files, count, (bytes, str)):
                raise damaged(place / name, "its filenames", f"{count} names")
            # Each row is an image: its red, green and blue plane, each row by row.
            pixels[len(labels) : len(labels) + count] = data.reshape(count, 3, 32, 32)
            labels += own
            ids += map(_text, files)
        return ImageSet(torch.from_numpy(pixels), torch.tensor(labels, dtype=torch.int64), classes, tuple(ids))

    return TrainTest(images(layout.train), images(layout.test))


def _is_list_of(value: Any, count: int, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, list) and len(value) == count and all(type(item) in kinds for item in value)


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


CIFAR10_LAYOUT = CifarLayout(
    train={f"data_batch_{number}": 10_000 for number in range(1, 6)},
    test={"test_batch": 10_000},
    meta="batches.meta",
    classes=10,
    labels_key=b"labels",
    classes_key=b"label_names",
)
CIFAR100_LAYOUT = CifarLayout({"train": 50_000}, {"test": 10_000}, "meta", 100, b"fine_labels", b"fine_label_names")


def _known(name: str, layout: CifarLayout, folder: str, archive: str, md5: str) -> KnownSet:
    source = Source(f"https://www.cs.toronto.edu/~kriz/{archive}", md5)
    return KnownSet(name, partial(read_cifar, layout), (folder,), layout.files, (source,), target=folder, inside=folder)


CIFAR10 = _known(
    "cifar10", CIFAR10_LAYOUT, "cifar-10-batches-py", "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"
)
CIFAR100 = _known(
    "cifar100", CIFAR100_LAYOUT, "cifar-100-python", "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"
)


class _Bytes:
    """Replaces ``numpy.dtype``: the call ``dtype('u1', 0, 1)`` and the state after it both mean bytes."""

    __slots__ = ()

    def __init__(self, kind: object, *_: object) -> None:
        if kind not in ("u1", b"u1"):
            raise DataError(f"it contains an array of type {kind!r}, expected bytes ('u1')")

    def __setstate__(self, state: object) -> None:
        """Byte order, fields and flags: a byte has none of them, and they are not used."""


class _Array:
    """Replaces ``numpy.ndarray`` and the function that makes one, empty until its state arrives."""

    __slots__ = ("values",)

    def __init__(self, *_: object) -> None:
        self.values: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)

    def __setstate__(self, state: object) -> None:
        match state:
            case (1, tuple(shape), _Bytes(), False, bytes(content)) if all(type(n) is int and n >= 0 for n in shape):
                self.values = np.frombuffer(content, dtype=np.uint8).reshape(shape)
            case _:
                raise DataError("it sets an array's state to something other than version, shape, type, order, bytes")


_STAND_INS = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,  # the name in NumPy 2
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Bytes,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise DataError(f"it uses {module}.{name}, which no official batch needs and which may do harm")
        return _STAND_INS[module, name]


def unpickle(content: bytes, file: object) -> dict[bytes, Any]:
    """The dictionary in a CIFAR pickle, with its keys as bytes; ``file`` is its name for messages."""
    try:
        if sum(operation.name in _CONTAINERS for operation, _, _ in pickletools.genops(content)) > MOST_CONTAINERS:
            raise DataError(f"it contains more than {MOST_CONTAINERS:,} lists, tuples and dictionaries")
        found = _Unpickler(io.BytesIO(content), encoding="bytes").load()
        values = {key: value.values if isinstance(value, _Array) else value for key, value in found.items()}
        return {key.encode() if isinstance(key, str) else key: value for key, value in values.items()}
    except Exception as error:  # a damaged pickle can fail in many ways
        reason = str(error)[:200] or type(error).__name__
        raise DataError(f"{file} is not a complete pickle of the official format: {reason}.") from error

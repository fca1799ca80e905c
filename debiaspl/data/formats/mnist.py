"""MNIST (LeCun, Cortes and Burges): 28x28 grey digits in four idx files, .gz."""

import gzip
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from debiaspl.data.errors import damaged
from debiaspl.data.formats.definition import KnownSet, Source, TrainTest
from debiaspl.data.images import ImageSet

SIDE = 28


def read(place: Path, train: int = 60_000, test: int = 10_000) -> TrainTest:
    """The set; ``train`` and ``test`` are the numbers of images in its files."""
    return TrainTest(_part(place, "train", "train", train), _part(place, "t10k", "test", test))


def _part(place: Path, prefix: str, name: str, count: int) -> ImageSet:
    images = _idx(place, f"{prefix}-images", (count, SIDE, SIDE))
    labels = _idx(place, f"{prefix}-labels", (count,))
    if labels.max() > 9:
        raise damaged(place, f"labels of {prefix} run to {labels.max()}", "0 to 9", place, "mnist")
    return ImageSet(
        images=torch.from_numpy(images).unsqueeze(1),
        labels=torch.from_numpy(labels.astype(np.int64)),
        classes=tuple(str(digit) for digit in range(10)),
        ids=tuple(f"{name}/{position}" for position in range(count)),
    )


def _idx(place: Path, stem: str, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The values after a header: two zeros, the type (8: bytes), the number of dimensions, and their sizes."""
    file = place / f"{stem}-idx{len(shape)}-ubyte.gz"
    if not file.is_file():
        raise damaged(place, f"{file.name} missing", ", ".join(_MD5), place, "mnist")
    header = np.array([0x0800 + len(shape), *shape], dtype=">u4").tobytes()
    size = len(header) + int(np.prod(shape))
    try:
        with gzip.open(file) as stream:
            content = stream.read(size + 1)  # no more: a damaged file must not fill the memory
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise damaged(file, f"it ends early or is damaged ({error})", "a complete .gz file", place, "mnist") from error
    if content[: len(header)] != header or len(content) != size:
        found = f"it has {len(content):,} bytes and begins with {content[: len(header)].hex()}"
        raise damaged(file, found, f"{size:,} bytes that begin with {header.hex()}", place, "mnist")
    # Copied, because torch needs writable memory.
    return np.frombuffer(content, dtype=np.uint8, offset=len(header)).reshape(shape).copy()


_ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_MD5 = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}

MNIST = KnownSet(
    name="mnist",
    read=read,
    places=("mnist", "MNIST/raw", "MNIST", "raw"),
    signs=tuple(_MD5),
    sources=tuple(Source(_ADDRESS + name, md5) for name, md5 in _MD5.items()),
    target="mnist",
)

"""Known sets, from their authors' address to their tensors: digits, MNIST, EuroSAT, ImageNet."""

import gzip
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray

from debiaspl.data.images import ImageSet, TrainTest
from debiaspl.data.lazy import left_in_files, read_listing
from debiaspl.data.listing import list_folder
from debiaspl.data.splits import FewLabels
from debiaspl.data.text import DataError


@dataclass(frozen=True)
class Source:
    """A file at its authors' address."""

    url: str
    md5: str

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class KnownSet:
    """What the package must know about a set to download, find and read it."""

    name: str
    read: Callable[[Path], TrainTest]
    """Reads the set from the place where it was found."""
    places: tuple[str, ...]
    """Folders below a data folder where the set may be."""
    signs: tuple[str, ...]
    """A folder with any of these contains the set, complete or not."""
    sources: tuple[Source, ...] = ()
    """One archive, or the files themselves; empty if the authors require registration."""
    target: str = ""
    """Where a downloaded set is put, below the data folder."""
    inside: str | None = None
    """The folder in the archive that becomes the target; None if the files themselves are the set."""
    elsewhere: str = ""
    """How to get a set without sources."""


def damaged(file: Path, found: str, expected: str) -> DataError:
    return DataError(f"{file} is damaged or not the official file: {found}, expected {expected}.")


def digits() -> TrainTest:
    """The digits of scikit-learn (Alpaydin and Kaynak 1998): 1,797, 8x8, grey, no download. There is no official test
    set: 50 of each class are held out, the same ones for every seed of every experiment."""
    *pixels, labels = _digits_columns()
    # The authors' pixels are counts from 0 to 16; scaled to the range of a byte.
    grey = np.rint(np.stack(pixels, 1).reshape(-1, 1, 8, 8) * (255 / 16)).astype(np.uint8)
    numbers = torch.from_numpy(labels.astype(np.int64))
    everything = ImageSet(torch.from_numpy(grey), numbers, tuple(map(str, range(10))))
    test, train = FewLabels(50, labeled_also_unlabeled=False).split(numbers, seed=0)
    return TrainTest(everything.select(train), everything.select(test))


@cache  # a program that trains several short runs would spend a fifth of its time here
def _digits_columns() -> NDArray[np.float64]:
    """(65, N): the pixels, and the label; from the file that scikit-learn's load_digits reads. To import that would
    take longer than everything else before the first step."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise ImportError("the digits come with scikit-learn: pip install 'debiaspl[digits]'")
    file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    columns: NDArray[np.float64] = np.loadtxt(file, delimiter=",", unpack=True)
    columns.flags.writeable = False
    return columns


_MNIST_ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_MNIST_MD5 = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}


def read_mnist(place: Path, train: int = 60_000, test: int = 10_000) -> TrainTest:
    """MNIST (LeCun, Cortes and Burges): 28x28 grey digits in four idx files, .gz, of so many images."""
    return TrainTest(_mnist_part(place, "train", "train", train), _mnist_part(place, "t10k", "test", test))


def _mnist_part(place: Path, prefix: str, name: str, count: int) -> ImageSet:
    images = _idx(place / f"{prefix}-images-idx3-ubyte.gz", (count, 28, 28))
    labels = _idx(place / f"{prefix}-labels-idx1-ubyte.gz", (count,))
    if labels.max() > 9:
        raise damaged(place, f"labels of {prefix} run to {labels.max()}", "0 to 9")
    return ImageSet(
        images=torch.from_numpy(images).unsqueeze(1),
        labels=torch.from_numpy(labels.astype(np.int64)),
        classes=tuple(map(str, range(10))),
        ids=tuple(f"{name}/{position}" for position in range(count)),
    )


def _idx(file: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The values after a header: two zeros, the type (8: bytes), the number of dimensions, and their sizes."""
    if not file.is_file():
        raise damaged(file.parent, f"{file.name} missing", ", ".join(_MNIST_MD5))
    header = np.array([0x0800 + len(shape), *shape], dtype=">u4").tobytes()
    size = len(header) + int(np.prod(shape))
    try:
        with gzip.open(file) as stream:
            content = stream.read(size + 1)  # no more: a damaged file must not fill the memory
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise damaged(file, f"it ends early or is damaged ({error})", "a complete .gz file") from error
    if content[: len(header)] != header or len(content) != size:
        found = f"it has {len(content):,} bytes and begins with {content[: len(header)].hex()}"
        raise damaged(file, found, f"{size:,} bytes that begin with {header.hex()}")
    # Copied, because torch needs writable memory.
    return np.frombuffer(content, dtype=np.uint8, offset=len(header)).reshape(shape).copy()


MNIST = KnownSet(
    name="mnist",
    read=read_mnist,
    places=("mnist", "MNIST/raw", "MNIST", "raw"),
    signs=tuple(_MNIST_MD5),
    sources=tuple(Source(_MNIST_ADDRESS + name, md5) for name, md5 in _MNIST_MD5.items()),
    target="mnist",
)

EUROSAT_SIZES: Mapping[str, int] = MappingProxyType(
    {
        **{"AnnualCrop": 3000, "Forest": 3000, "HerbaceousVegetation": 3000, "Highway": 2500, "Industrial": 2500},
        **{"Pasture": 2000, "PermanentCrop": 2500, "Residential": 3000, "River": 2500, "SeaLake": 3000},
    }
)
"""Number of images per class in the whole set; the images of a class are numbered from 1."""


def read_eurosat(place: Path) -> TrainTest:
    """EuroSAT (Helber et al. 2019): 27,000 satellite images, 64x64 RGB, in ten class folders, or any part of them with
    training and test images of each class. There is no official test set: of each ten numbers in the file names of a
    class, one odd and one even are held out for every seed, so half of the set (odd or even) holds out a fifth too."""
    listing = list_folder(place)
    if listing.classes != tuple(EUROSAT_SIZES):
        raise damaged(place, f"the folders {', '.join(listing.classes)}", ", ".join(EUROSAT_SIZES))
    images, skipped = read_listing(listing, (64, 64))
    if skipped:
        raise damaged(place / skipped[0][0], skipped[0][1], "a 64x64 JPEG")
    held_out = {name: held_out_numbers(name) for name in EUROSAT_SIZES}
    is_test = np.zeros(len(images), dtype=bool)
    for position, file in enumerate(images.ids):
        name = file.split("/")[0]
        match = re.fullmatch(rf"{name}/{name}_([1-9]\d*)\.jpg", file)
        if match is None or int(match[1]) > EUROSAT_SIZES[name]:
            raise DataError(f"{place / file} is not an image of the set. Move the file out of this folder.")
        is_test[position] = held_out[name][int(match[1])]
    train, test = (images.select(torch.from_numpy(np.flatnonzero(part))) for part in (~is_test, is_test))
    if 0 in train.counts() + test.counts():
        raise DataError(f"a class in {place} has no training or no test images.")
    return TrainTest(train, test)


def held_out_numbers(name: str) -> NDArray[np.bool_]:
    """Whether image ``number`` of a class is held out."""
    random = np.random.RandomState(tuple(EUROSAT_SIZES).index(name))
    decades = np.arange(0, EUROSAT_SIZES[name], 10)
    held_out = np.zeros(EUROSAT_SIZES[name] + 1, dtype=bool)
    for first in (1, 2):
        held_out[decades + first + 2 * random.randint(5, size=len(decades))] = True
    return held_out


EUROSAT = KnownSet(
    name="eurosat",
    read=read_eurosat,
    places=("EuroSAT/2750", "EuroSAT", "eurosat/2750", "eurosat", "2750"),
    signs=tuple(EUROSAT_SIZES),
    sources=(Source("https://madm.dfki.de/files/sentinel/EuroSAT.zip", "c8fa014336c82ac7804f0398fcb19387"),),
    target="EuroSAT/2750",
    inside="2750",
)


def read_imagenet(place: Path, classes: int = 1000) -> TrainTest:
    """ImageNet (ILSVRC 2012) as class folders, ``train/<wnid>/*`` and ``val/<wnid>/*``, with its images left in their
    files: 1.3 million do not fit in memory. Class names are the WordNet numbers, sorted."""
    train, val = (left_in_files(list_folder(place / part), 224) for part in ("train", "val"))
    if len(train.classes) != classes:
        found = f"{place / 'train'} has {len(train.classes)} class folders, expected {classes}"
        raise DataError(f"{found}, such as n01440764. Unpack each inner archive into a folder of its name.")
    if val.classes != train.classes:
        found = f"{place / 'val'} has {len(val.classes)} class folders, expected the {classes} of {place / 'train'}"
        raise DataError(f"{found}. Move each image to the folder of its class.")
    return TrainTest(
        replace(train, ids=tuple(f"train/{name}" for name in train.ids)),
        replace(val, ids=tuple(f"val/{name}" for name in val.ids)),
    )


IMAGENET = KnownSet(
    name="imagenet",
    read=read_imagenet,
    places=("imagenet", "ImageNet"),
    signs=("train", "val"),
    elsewhere=(
        "imagenet must be requested from its authors: register at https://image-net.org, and unpack the images "
        "of ILSVRC 2012 to imagenet/train/<class>/ and imagenet/val/<class>/ in your data folder."
    ),
)

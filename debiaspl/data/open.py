"""Open data by name or by path: a known set, a folder of images, tar shards, or a packed folder."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.data.decode import resized
from debiaspl.data.images import UNLABELED, ImageSet, TrainTest
from debiaspl.data.known import SETS, load
from debiaspl.data.lazy import LazyImages, images_of, left_in_files
from debiaspl.data.listing import Listing, list_folder, list_images
from debiaspl.data.packed import INDEX, open_packed
from debiaspl.data.shards import holds_shards, list_shards
from debiaspl.data.splits import LabelShare
from debiaspl.data.text import DataError

TEST_SHARE = 0.2


def open_data(data: str, image_size: int = 0, stream: bool = False) -> TrainTest:
    """A known set by its name, or the data at a path.

    If there is no test set, a fifth of each class is held out, the same fifth for every seed.

    Args:
        data: a name such as ``cifar10``, or a path: class folders, a folder with labels.csv, tar shards, a packed set.
        image_size: side of the images; 0 for that of the set, or of the first image of a folder.
        stream: read the images of a folder while training, instead of once before. Tar shards are always streamed.
    """
    place = Path(data).expanduser()
    if not place.exists() and ("/" in data or data.startswith(("~", "."))):
        raise DataError(f"{place} does not exist. Expected images, tar shards, a packed set, or a known set's name.")
    if is_known(data) or not place.exists():
        whole = load(data)
        return TrainTest(_sized(whole.train, image_size), _sized(whole.test, image_size)) if image_size else whole
    if _is_packed(place):
        return with_test_set(open_packed(place))
    return with_test_set(images_of(_list_labeled(place), image_size, stream))


def is_known(data: str) -> bool:
    """Whether this names a known set."""
    return data in SETS or data == "digits"


def is_folder_of_images(data: str) -> bool:
    """Whether the path is a plain folder: not a known set, tar shards or a packed set."""
    place = Path(data).expanduser()
    return not is_known(data) and place.is_dir() and not _is_packed(place) and not holds_shards(place)


def _is_packed(place: Path) -> bool:
    return (place / INDEX).exists()


def _sized(images: ImageSet, side: int) -> ImageSet:
    """Streamed images are read at this size, images in memory are resized once."""
    stored, size = images.images, (side, side)
    if isinstance(stored, LazyImages):
        return replace(images, images=replace(stored, size=size))
    return replace(images, images=resized(stored, size)) if isinstance(stored, Tensor) else images


def list_place(place: Path) -> Listing:
    """All images of a folder, or of tar shards, without labels."""
    if not holds_shards(place):
        return list_images(place)
    shards = list_shards(place)
    return replace(shards, labels=torch.full_like(shards.labels, UNLABELED), classes=())


def read_place(place: Path, image_size: int) -> ImageSet:
    """A folder of images, or tar shards, with the images left in their files."""
    return left_in_files(_list_labeled(place), image_size)


def _list_labeled(place: Path) -> Listing:
    if not holds_shards(place):
        return list_folder(place)
    shards = list_shards(place)
    if len(shards.classes) < 2:
        found = f"the shards at {place} have {len(shards.classes)} classes, expected two or more"
        raise DataError(f"{found}. Each image needs a file with its class beside it (0001.jpg, 0001.cls).")
    return shards


def with_test_set(images: ImageSet) -> TrainTest:
    """A fifth of each class is held out, the same for every seed."""
    if int(images.labels.min()) == UNLABELED:
        found = f"{int((images.labels == UNLABELED).sum()):,} of {len(images):,} images have no label"
        raise DataError(f"{found}. A recipe hides labels by its own protocol, so it needs a label for every image.")
    if min(counts := images.counts()) < 2:
        few = images.classes[counts.index(min(counts))]
        raise DataError(f"class {few} has {min(counts)} image(s), expected 2: one to train and one to test with.")
    test, train = LabelShare(TEST_SHARE).split(images.labels, seed=0)
    return TrainTest(images.select(train), images.select(test))

"""Open data by name or by path: a known set, a folder of images, tar shards, or a packed folder."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.data.decode import resized
from debiaspl.data.errors import DataError
from debiaspl.data.folder import left_in_files, read_folder
from debiaspl.data.formats.definition import TrainTest
from debiaspl.data.images import UNLABELED, ImageSet
from debiaspl.data.known import SETS, load
from debiaspl.data.lazy import FolderFiles, LazyImages
from debiaspl.data.listing import Listing, list_folder, list_images
from debiaspl.data.packed import INDEX, open_packed
from debiaspl.data.shards import find_shards, index_shards
from debiaspl.data.splits import held_out_share

TEST_SHARE = 0.2


def open_data(data: str, image_size: int = 0, stream: bool = False, root: str | Path | None = None) -> TrainTest:
    """A known set by its name, or the data at a path.

    If there is no test set, a fifth of each class is held out, the same fifth for every seed.

    Args:
        data: a name such as ``cifar10``, or a path: class folders, a folder with labels.csv, tar shards, a packed set.
        image_size: side of the images; 0 for that of the set, or of the first image of a folder.
        stream: read the images of a folder while training, instead of once before. Tar shards are always streamed.
        root: an additional folder in which known sets are searched.
    """
    place = Path(data).expanduser()
    if not place.exists() and ("/" in data or data.startswith(("~", "."))):
        raise DataError(
            f"{place} does not exist. Expected images, tar shards, a packed set, or the name of a known image set."
        )
    if is_known(data) or not place.exists():
        return _sized(load(data, root), image_size)
    if _is_packed(place):
        return with_test_set(open_packed(place))
    images = read_place(place, image_size)
    if isinstance(images.images, LazyImages) and isinstance(images.images.files, FolderFiles) and not stream:
        images, _ = read_folder(place, images.images.size)
    return with_test_set(images)


def is_known(data: str) -> bool:
    """Whether this names a known set."""
    return data in SETS or data == "digits"


def is_folder_of_images(data: str) -> bool:
    """Whether the path is a plain folder: not a known set, tar shards or a packed set."""
    place = Path(data).expanduser()
    return not is_known(data) and place.is_dir() and not _is_packed(place) and not holds_shards(place)


def _is_packed(place: Path) -> bool:
    return (place / INDEX).exists()


def holds_shards(place: Path) -> bool:
    """Whether the place is a tar shard, or a folder of them."""
    return place.is_file() or any(place.glob("*.tar"))


def _sized(whole: TrainTest, image_size: int) -> TrainTest:
    """A set at another size: streamed images are read at this size, images in memory are resized once."""

    def sized(images: ImageSet) -> ImageSet:
        stored, size = images.images, (image_size, image_size)
        if isinstance(stored, LazyImages):
            return replace(images, images=replace(stored, size=size))
        return replace(images, images=resized(stored, size)) if isinstance(stored, Tensor) else images

    if not image_size:
        return whole
    return TrainTest(sized(whole.train), sized(whole.test))


def list_place(place: Path) -> Listing:
    """All images of a folder, or of tar shards, without labels."""
    if not holds_shards(place):
        return list_images(place)
    samples = index_shards(find_shards(place))
    none = torch.full((len(samples.ids),), UNLABELED)
    return Listing(place, samples.ids, none, (), samples.skipped, stored=samples.files)


def read_place(place: Path, image_size: int) -> ImageSet:
    """A folder of images, or tar shards, with the images left in their files."""
    if holds_shards(place):
        samples = index_shards(find_shards(place))
        classes = tuple(sorted(set(samples.labels) - {""}, key=_by_number))
        if len(classes) < 2:
            raise DataError(
                f"the shards at {place} have {len(classes)} classes, expected two or more: each sample needs a .cls "
                "file with its class beside the image (0001.jpg, 0001.cls)."
            )
        number = {name: label for label, name in enumerate(classes)} | {"": UNLABELED}
        labels = torch.tensor([number[label] for label in samples.labels])
        lazy = LazyImages(samples.files, torch.arange(len(samples.ids)), (image_size, image_size))
        return ImageSet(lazy if image_size else lazy.with_size_of_first(), labels, classes, samples.ids)
    return left_in_files(list_folder(place), image_size)


def _by_number(name: str) -> tuple[int, int, str]:
    """Sort key: class numbers in numeric order, then names alphabetically."""
    return (0, int(name), "") if name.isdecimal() else (1, 0, name)


def with_test_set(images: ImageSet) -> TrainTest:
    if int(images.labels.min()) == UNLABELED:
        unlabeled = int((images.labels == UNLABELED).sum())
        raise DataError(
            f"{unlabeled:,} of {len(images):,} images have no label. A recipe hides labels by its own protocol, so it "
            "needs a label for every image."
        )
    train, test = held_out_share(images.labels, TEST_SHARE, seed=0)
    return TrainTest(images.select(train), images.select(test))

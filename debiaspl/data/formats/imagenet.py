"""ImageNet (ILSVRC 2012) as class folders: ``train/<wnid>/*`` and ``val/<wnid>/*``; images stay in their files."""

from dataclasses import replace
from pathlib import Path

from debiaspl.data.errors import DataError
from debiaspl.data.folder import left_in_files
from debiaspl.data.formats.definition import KnownSet, TrainTest
from debiaspl.data.images import ImageSet
from debiaspl.data.listing import list_folder

SIDE = 224


def read(place: Path, classes: int = 1000) -> TrainTest:
    """The set with its images left in their files: 1.3 million do not fit in memory. Class names are the WordNet
    numbers, sorted."""
    train, val = _part(place, "train"), _part(place, "val")
    if len(train.classes) != classes:
        raise DataError(
            f"{place / 'train'} has {len(train.classes)} class folders, expected {classes}, such as n01440764. "
            "Unpack each archive inside the authors' training archive into a folder of its name."
        )
    if val.classes != train.classes:
        raise DataError(
            f"{place / 'val'} has {len(val.classes)} class folders, expected the {classes} of {place / 'train'}. The "
            "authors' validation archive has none: move each image to the folder of its class."
        )
    return TrainTest(train, val)


def _part(place: Path, part: str) -> ImageSet:
    images = left_in_files(list_folder(place / part), SIDE)
    return replace(images, ids=tuple(f"{part}/{name}" for name in images.ids))


IMAGENET = KnownSet(
    name="imagenet",
    read=read,
    places=("imagenet", "ImageNet"),
    signs=("train", "val"),
    elsewhere=(
        "imagenet must be requested from its authors: register at https://image-net.org, and unpack the images "
        "of ILSVRC 2012 to imagenet/train/<class>/ and imagenet/val/<class>/ in your data folder."
    ),
)

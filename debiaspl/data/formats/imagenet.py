"""ImageNet (ILSVRC 2012) as class folders: ``train/<wnid>/*`` and ``val/<wnid>/*``; images stay in their files."""

import os
import re
from pathlib import Path

from torch import tensor

from debiaspl.data.errors import DataError
from debiaspl.data.folder import left_in_files
from debiaspl.data.formats.definition import KnownSet, TrainTest
from debiaspl.data.images import ImageSet
from debiaspl.data.listing import Listing

SIDE = 224
_IMAGES = (".jpeg", ".jpg", ".png")


def read(place: Path, classes: int = 1000) -> TrainTest:
    """The set with its images left in their files: 1.3 million do not fit in memory. Class names are the WordNet
    numbers, sorted."""
    names = _class_folders(place / "train")
    if len(names) != classes:
        raise DataError(
            f"{place / 'train'} has {len(names)} class folders, expected {classes} with names such as n01440764. "
            "Unpack each archive inside the authors' training archive into a folder of its name."
        )
    found = _class_folders(place / "val")
    if found != names:
        raise DataError(
            f"{place / 'val'} has {len(found)} class folders, expected the {classes} of {place / 'train'}. The "
            "authors' validation archive has none: move each image to the folder of its class."
        )
    return TrainTest(_part(place, "train", names), _part(place, "val", names))


def _class_folders(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if re.fullmatch(r"n\d{8}", name) and (folder / name).is_dir())
    except OSError as error:
        raise DataError(f"{folder} could not be read: {error.strerror or error}. Expected class folders.") from error


def _part(place: Path, part: str, classes: list[str]) -> ImageSet:
    """The images of one part, class by class, sorted within each class."""
    files: list[str] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        here = place / part / name
        found = sorted(file for file in os.listdir(here) if file.lower().endswith(_IMAGES) and file[0] != ".")
        if not found:
            raise DataError(f"{here} has no image, expected files that end in {', '.join(_IMAGES)}. Unpack it again.")
        files += [f"{part}/{name}/{file}" for file in found]
        labels += [label] * len(found)
    return left_in_files(Listing(place, tuple(files), tensor(labels), tuple(classes), ()), SIDE)


IMAGENET = KnownSet(
    name="imagenet",
    read=read,
    places=("imagenet", "ImageNet"),
    signs=("train/", "val/"),
    elsewhere=(
        "imagenet must be requested from its authors: register at https://image-net.org, and unpack the images "
        "of ILSVRC 2012 to imagenet/train/<class>/ and imagenet/val/<class>/ in your data folder."
    ),
)

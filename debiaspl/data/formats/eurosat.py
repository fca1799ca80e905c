"""EuroSAT (Helber et al. 2019): 27,000 satellite images, 64x64 RGB, in ten class folders; no official test set.

A fifth of each class is held out as test set: the same images for every seed of every experiment. They depend only on
the numbers in the file names: of each ten consecutive numbers, one odd and one even. So a half of the set (the odd
numbers or the even ones) holds out exactly a fifth too, and only images that the whole set holds out.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray

from debiaspl.data.errors import DataError, again, damaged
from debiaspl.data.folder import read_listing
from debiaspl.data.formats.definition import KnownSet, Source, TrainTest
from debiaspl.data.listing import list_folder

SIDE = 64
SIZES: Mapping[str, int] = MappingProxyType(
    {
        **{"AnnualCrop": 3000, "Forest": 3000, "HerbaceousVegetation": 3000, "Highway": 2500, "Industrial": 2500},
        **{"Pasture": 2000, "PermanentCrop": 2500, "Residential": 3000, "River": 2500, "SeaLake": 3000},
    }
)
"""Number of images per class in the whole set; the images of a class are numbered from 1."""


def read(place: Path) -> TrainTest:
    """All images below ``place``: the whole set, or any part of it with training and test images of each class."""
    listing = list_folder(place)
    if listing.classes != tuple(SIZES):
        raise damaged(place, f"the folders {', '.join(listing.classes)}", ", ".join(SIZES), place, "eurosat")
    images, skipped = read_listing(listing, (SIDE, SIDE))
    if skipped:
        file, reason = skipped[0]
        raise damaged(place / file, reason, "a 64x64 JPEG", place, "eurosat")
    held_out = {name: held_out_numbers(name) for name in SIZES}
    is_test = np.array([_is_held_out(file, held_out, place) for file in images.ids])
    for number, name in enumerate(SIZES):
        of_class = is_test[images.labels.numpy() == number]
        if of_class.all() or not of_class.any():
            raise DataError(f"{place / name} has no training or no test images. {again(place, 'eurosat')}")
    train, test = (torch.from_numpy(np.flatnonzero(part)) for part in (~is_test, is_test))
    return TrainTest(images.select(train), images.select(test))


def _is_held_out(file: str, held_out: dict[str, NDArray[np.bool_]], place: Path) -> bool:
    name = file.split("/")[0]
    match = re.fullmatch(rf"{name}/{name}_([1-9]\d*)\.jpg", file)
    if match is None or int(match[1]) >= len(held_out[name]):
        raise DataError(f"{place / file} is not an image of the set. Move the file out of this folder.")
    return bool(held_out[name][int(match[1])])


def held_out_numbers(name: str) -> NDArray[np.bool_]:
    """Whether image ``number`` of a class is held out."""
    random = np.random.RandomState(tuple(SIZES).index(name))
    decades = np.arange(0, SIZES[name], 10)
    held_out = np.zeros(SIZES[name] + 1, dtype=bool)
    for first in (1, 2):
        held_out[decades + first + 2 * random.randint(5, size=len(decades))] = True
    return held_out


EUROSAT = KnownSet(
    name="eurosat",
    read=read,
    places=("EuroSAT/2750", "EuroSAT", "eurosat/2750", "eurosat", "2750"),
    signs=tuple(SIZES),
    sources=(Source("https://madm.dfki.de/files/sentinel/EuroSAT.zip", "c8fa014336c82ac7804f0398fcb19387"),),
    target="EuroSAT/2750",
    inside="2750",
)

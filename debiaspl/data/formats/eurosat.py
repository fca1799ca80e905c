"""EuroSAT (Helber et al. 2019): 27,000 satellite images, 64x64 RGB JPEGs in ten class folders; no official test set.

A fifth of each class is held out as test set: the same images for every seed of every experiment. They depend only on
the numbers in the file names: of each ten consecutive numbers, one odd and one even. So a half of the set (the odd
numbers or the even ones) holds out exactly a fifth too, and only images that the whole set holds out.
"""

import io
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from debiaspl._processes import usable_cores
from debiaspl.data.errors import DataError, again, damaged
from debiaspl.data.formats.definition import KnownSet, Source, TrainTest
from debiaspl.data.images import ImageSet

SIDE = 64
SIZES: Mapping[str, int] = MappingProxyType(
    {
        "AnnualCrop": 3000,
        "Forest": 3000,
        "HerbaceousVegetation": 3000,
        "Highway": 2500,
        "Industrial": 2500,
        "Pasture": 2000,
        "PermanentCrop": 2500,
        "Residential": 3000,
        "River": 2500,
        "SeaLake": 3000,
    }
)
"""Number of images per class in the whole set; the images of a class are numbered from 1."""


def read(place: Path) -> TrainTest:
    """All images below ``place``: the whole set, or any part of it with training and test images of each class."""
    numbers = {name: _numbers(place, name) for name in SIZES}
    ids = [f"{name}/{name}_{number}.jpg" for name in numbers for number in numbers[name]]
    # More threads would wait for each other: only the decoding itself runs in parallel.
    with ThreadPoolExecutor(min(8, usable_cores())) as pool:
        images = np.empty((len(ids), 3, SIDE, SIDE), dtype=np.uint8)
        for _ in pool.map(partial(_decode, place), ids, images):
            pass  # one by one, so that the first damaged file is reported
    labels = np.repeat(np.arange(len(SIZES)), [len(found) for found in numbers.values()])
    everything = ImageSet(torch.from_numpy(images), torch.from_numpy(labels), tuple(SIZES), tuple(ids))
    is_test = np.concatenate([held_out_numbers(name)[found] for name, found in numbers.items()])
    _check_parts(place, labels, is_test)
    train, test = (torch.from_numpy(np.flatnonzero(part)) for part in (~is_test, is_test))
    return TrainTest(everything.select(train), everything.select(test))


def _numbers(place: Path, name: str) -> NDArray[np.int64]:
    """The numbers of a class's images, in the order of their sorted file names."""
    if not (place / name).is_dir():
        raise damaged(place, f"no folder {name}", f"the folders {', '.join(SIZES)}", place, "eurosat")
    files = sorted(file for file in os.listdir(place / name) if file.endswith(".jpg") and not file.startswith("."))
    found = [int(match[1]) if (match := re.fullmatch(rf"{name}_([1-9]\d*)\.jpg", file)) else 0 for file in files]
    for file, number in zip(files, found, strict=True):
        if not 1 <= number <= SIZES[name]:
            raise DataError(
                f"{place / name / file} is not an image of the set, expected {name}_1.jpg to {name}_{SIZES[name]}.jpg. "
                "Move the file out of this folder."
            )
    return np.array(found, dtype=np.int64)


def held_out_numbers(name: str) -> NDArray[np.bool_]:
    """Whether image ``number`` of a class is held out."""
    random = np.random.RandomState(tuple(SIZES).index(name))
    decades = np.arange(0, SIZES[name], 10)
    held_out = np.zeros(SIZES[name] + 1, dtype=bool)
    for first in (1, 2):
        held_out[decades + first + 2 * random.randint(5, size=len(decades))] = True
    return held_out


def _check_parts(place: Path, labels: NDArray[np.int64], is_test: NDArray[np.bool_]) -> None:
    for number, name in enumerate(SIZES):
        test = int(is_test[labels == number].sum())
        train = int((labels == number).sum()) - test
        if not train or not test:
            raise DataError(
                f"{place / name} has {train} training and {test} test images, expected some of both: "
                f"a fifth of the class's {SIZES[name]:,} images is for testing. {again(place, 'eurosat')}"
            )


def _decode(place: Path, name: str, out: NDArray[np.uint8]) -> None:
    file, expected = place / name, f"a {SIDE}x{SIDE} RGB JPEG"
    content = file.read_bytes()
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG",)) as image:
            # From the header: an image of another size is not decoded at all.
            if image.size != (SIDE, SIDE) or image.mode != "RGB":
                found = f"it is {image.size[0]}x{image.size[1]} {image.mode}"
                raise damaged(file, found, expected, place, "eurosat")
            out[:] = np.asarray(image).transpose(2, 0, 1)
    except (Image.DecompressionBombError, SyntaxError, OSError) as error:
        # If Pillow knows no file name, its message names an object in memory.
        reason = "not a JPEG" if isinstance(error, UnidentifiedImageError) else str(error)
        raise damaged(file, f"it cannot be decoded ({reason})", expected, place, "eurosat") from error


EUROSAT = KnownSet(
    name="eurosat",
    read=read,
    places=("EuroSAT/2750", "EuroSAT", "eurosat/2750", "eurosat", "2750"),
    signs=tuple(f"{name}/" for name in SIZES),
    sources=(Source("https://madm.dfki.de/files/sentinel/EuroSAT.zip", "c8fa014336c82ac7804f0398fcb19387"),),
    target="EuroSAT/2750",
    inside="2750",
)

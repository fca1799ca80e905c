"""The fourteen operations of RandAugment by name, in Pillow's units."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from debiaspl.augment import blends, geometry, tables
from debiaspl.augment.batch import LARGEST_SIDE, check_images


@dataclass(frozen=True)
class Family:
    """Operations that differ in what they build for each image, and share the work on its pixels."""

    build: Mapping[str, Callable[[Tensor, Tensor], Tensor]]
    """For each operation: images and values -> lookup tables, matrices or dull images."""
    finish: Callable[[Tensor, Tensor, Tensor], Tensor]
    """Images, what was built for them, and values -> images."""


FAMILIES = (
    Family(tables.BUILD, tables.look_up),
    Family(geometry.BUILD, geometry.nearest),
    Family(blends.BUILD, blends.towards),
)

OPERATIONS = (
    "identity",
    "autocontrast",
    "brightness",
    "color",
    "contrast",
    "equalize",
    "posterize",
    "rotate",
    "sharpness",
    "shear_x",
    "shear_y",
    "solarize",
    "translate_x",
    "translate_y",
)
CODES = {name: code for code, name in enumerate(OPERATIONS)}


def operation(name: str, images: Tensor, value: Tensor | Sequence[float] | float = 0.0) -> Tensor:
    """Apply one operation to every image, with one value each: the result is bit for bit that of Pillow.

    Values are in Pillow's units: the factor of `ImageEnhance` (brightness, color, contrast, sharpness), the bits of
    `ImageOps.posterize`, the threshold of `ImageOps.solarize`, the degrees of `Image.rotate`, and the coefficient of
    `Image.transform` with `AFFINE` (shears and translations, nearest neighbour, black outside). A single number applies
    to all images. The other operations (identity, autocontrast, equalize) have no value.
    """
    check_names((name,))
    check_images(images)
    if name == "identity":
        return images.clone()
    values, side = torch.as_tensor(value, dtype=torch.float64, device=images.device), max(images.shape[2:])
    good = values.isfinite()
    if name == "posterize":
        good &= (values == values.round()) & (values >= 1) & (values <= 8)
    if name.startswith("shear"):
        good &= values.abs() <= LARGEST_SIDE / side
    if values.shape not in ((), images.shape[:1]) or not bool(good.all()):
        raise ValueError(
            f"{name} has the values {value!r:.60}, expected one finite number in Pillow's units, or one for each of "
            f"{len(images)} images: 1 to 8 bits for posterize, slopes up to {LARGEST_SIDE / side:g} for shears."
        )
    values = values.expand(len(images))
    family = next(family for family in FAMILIES if name in family.build)
    return family.finish(images, family.build[name](images, values), values)


def check_names(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in CODES]
    if unknown:
        raise ValueError(f"unknown operation {', '.join(map(repr, unknown))}. Expected one of {', '.join(OPERATIONS)}.")

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

UNITS = {
    "brightness": "the factor of ImageEnhance.Brightness",
    "color": "the factor of ImageEnhance.Color",
    "contrast": "the factor of ImageEnhance.Contrast",
    "posterize": "the bits that ImageOps.posterize keeps",
    "rotate": "the degrees of Image.rotate, counter-clockwise",
    "sharpness": "the factor of ImageEnhance.Sharpness",
    "shear_x": "the shift in x per pixel of y",
    "shear_y": "the shift in y per pixel of x",
    "solarize": "the level from which ImageOps.solarize inverts",
    "translate_x": "pixels, to the left",
    "translate_y": "pixels, upwards",
}


def operation(name: str, images: Tensor, value: Tensor | Sequence[float] | float | None = None) -> Tensor:
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
    values = _values(name, images, value)
    family = next(family for family in FAMILIES if name in family.build)
    return family.finish(images, family.build[name](images, values), values)


def check_names(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in CODES]
    if unknown:
        raise ValueError(f"unknown operation {', '.join(map(repr, unknown))}. Expected one of {', '.join(OPERATIONS)}.")


def _values(name: str, images: Tensor, value: Tensor | Sequence[float] | float | None) -> Tensor:
    count = images.shape[0]
    if name not in UNITS:
        return torch.zeros(count, dtype=torch.float64, device=images.device)
    if value is None:
        raise ValueError(f"{name} has no value, expected {UNITS[name]}: one number, or one for each of {count} images.")
    values = torch.as_tensor(value, dtype=torch.float64, device=images.device)
    if values.dim() == 0:
        values = values.expand(count)
    if values.shape != (count,):
        raise ValueError(
            f"values have shape {tuple(values.shape)}, expected ({count},): one number per image, or a single number."
        )
    _check_range(name, values, max(images.shape[2:]))
    return values


def _check_range(name: str, values: Tensor, side: int) -> None:
    if not bool(values.isfinite().all()):
        raise ValueError(f"{name} has a value that is not finite, expected {UNITS[name]}.")
    if name == "posterize" and not bool(((values == values.round()) & (values >= 1) & (values <= 8)).all()):
        raise ValueError(f"posterize has the values {_some(values)}, expected 1, 2, ... or 8: {UNITS[name]}.")
    limit = LARGEST_SIDE / side
    if name.startswith("shear") and bool((values.abs() > limit).any()):
        raise ValueError(
            f"{name} has the values {_some(values)}, expected {-limit:g} to {limit:g} for images of {side} pixels: "
            f"{UNITS[name]}. A slope of 1 is 45 degrees."
        )


def _some(values: Tensor) -> str:
    shown = [f"{value:g}" for value in values[:5].tolist()]
    return ", ".join(shown) + (", ..." if len(values) > 5 else "")

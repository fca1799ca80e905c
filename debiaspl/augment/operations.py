"""The fourteen operations of RandAugment by name: bit for bit what Pillow gives.

Values are in Pillow's units: the factor of `ImageEnhance` (brightness, color, contrast, sharpness), the bits of
`ImageOps.posterize`, the threshold of `ImageOps.solarize`, the degrees of `Image.rotate`, and the coefficient of
`Image.transform` with `AFFINE` (shears and translations, nearest neighbour, black outside). The other operations
(identity, autocontrast, equalize) take none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from debiaspl.augment import blends, geometry, tables


@dataclass(frozen=True)
class Family:
    """Operations that differ in what they prepare for each image, and share the work on its pixels."""

    build: Mapping[str, Callable[[Tensor, Tensor], Tensor]]
    """For each operation: images and values -> its tables, its matrices, or its dull images."""
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


def check_names(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in CODES]
    if unknown:
        raise ValueError(f"there is no operation {', '.join(map(repr, unknown))}; there are {', '.join(OPERATIONS)}.")

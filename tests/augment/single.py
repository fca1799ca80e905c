"""One operation of RandAugment by itself, which a run applies to its share of a batch."""

from collections.abc import Sequence

import torch
from torch import Tensor

from debiaspl.augment.operations import FAMILIES


def operation(name: str, images: Tensor, values: Sequence[float]) -> Tensor:
    """Apply it to every image, with a value for each, in Pillow's units."""
    if name == "identity":
        return images.clone()
    given = torch.tensor(values, dtype=torch.float64, device=images.device)
    family = next(family for family in FAMILIES if name in family.build)
    return family.finish(images, family.build[name](images, given), given)

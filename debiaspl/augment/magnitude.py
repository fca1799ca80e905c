"""Converts a drawn magnitude into a value in Pillow's units."""

from functools import lru_cache

import torch
from torch import Tensor

from debiaspl.augment.operations import CODES, OPERATIONS

SIGNED = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")


def at_level(name: str, level: int, levels: int, height: int, width: int) -> float:
    """FixMatch's value at `level` of `levels`, without its sign."""
    match name:
        case "brightness" | "color" | "contrast" | "sharpness":
            return 0.05 + 0.9 * level / levels
        case "posterize":
            return 4 + int(4 * level / levels)
        case "rotate":
            return int(30 * level / levels)
        case "shear_x" | "shear_y":
            return 0.3 * level / levels
        case "solarize":
            return 256 - int(256 * level / levels)
        case "translate_x" | "translate_y":
            return int(0.3 * level / levels * (width if name == "translate_x" else height))
    return 0.0


def limits(name: str, height: int, width: int) -> tuple[float, float]:
    """The range of a continuous magnitude."""
    match name:
        case "brightness" | "color" | "contrast" | "sharpness":
            return 0.05, 0.95
        case "posterize":
            return 4.0, 8.0
        case "rotate":
            return -30.0, 30.0
        case "shear_x" | "shear_y":
            return -0.3, 0.3
        case "solarize":
            return 0.0, 256.0
        case "translate_x" | "translate_y":
            side = width if name == "translate_x" else height
            return -0.3 * side, 0.3 * side
    return 0.0, 0.0


def stepped(codes: Tensor, size: Tensor, sign: Tensor, levels: int, height: int, width: int) -> Tensor:
    """Values at the integer levels 1 to `levels` - 1; `size` and `sign` are uniform in [0, 1)."""
    level = (size * (levels - 1)).long() + 1
    negative = (sign < 0.5).long()
    table = _levels(levels, height, width, codes.device)
    return table.take((negative * len(OPERATIONS) + codes) * levels + level)


def continuous(codes: Tensor, size: Tensor, height: int, width: int) -> Tensor:
    """Values anywhere in the range of the operation; `size` is uniform in [0, 1)."""
    low, span = _limits(height, width, codes.device)
    value = low.take(codes) + span.take(codes) * size
    return torch.where(codes == CODES["posterize"], value.floor(), value)


# Tables are made on the CPU and moved: in a CUDA graph capture that fails, instead of caching the graph's memory.
@lru_cache(maxsize=64)
def _levels(levels: int, height: int, width: int, device: torch.device) -> Tensor:
    table = torch.tensor(
        [[at_level(name, level, levels, height, width) for level in range(levels)] for name in OPERATIONS],
        dtype=torch.float64,
    )
    sign = torch.tensor([[-1.0 if name in SIGNED else 1.0] for name in OPERATIONS], dtype=torch.float64)
    return torch.stack((table, sign * table)).to(device)


@lru_cache(maxsize=64)
def _limits(height: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    ranges = torch.tensor([limits(name, height, width) for name in OPERATIONS], dtype=torch.float64)
    return ranges[:, 0].to(device), (ranges[:, 1] - ranges[:, 0]).to(device)

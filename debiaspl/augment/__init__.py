"""Weak and strong views of a whole batch at once, on the device where it lies.

Images are uint8 (N, C, H, W), C = 1 or 3, and stay so. Every image has its own draw, from a generator that the caller
owns, and every operation of RandAugment gives the bits that Pillow gives.
"""

from debiaspl.augment.cropcolor import CropColor
from debiaspl.augment.operations import OPERATIONS, operation
from debiaspl.augment.randaugment import Draws, RandAugment
from debiaspl.augment.views import Hide, ImageViews, VectorViews, ViewMaker
from debiaspl.augment.weak import Crops, Weak

__all__ = [
    "OPERATIONS",
    "CropColor",
    "Crops",
    "Draws",
    "Hide",
    "ImageViews",
    "RandAugment",
    "VectorViews",
    "ViewMaker",
    "Weak",
    "operation",
]

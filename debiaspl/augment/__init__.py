"""Weak and strong views of a whole batch at once, on its device.

Images are uint8 (N, C, H, W), C = 1 or 3, and stay uint8. Every image has its own random draw, from a generator that
the caller owns, and every operation of RandAugment returns the same bits as Pillow.
"""

from debiaspl.augment.cropcolor import CropColor as CropColor
from debiaspl.augment.operations import OPERATIONS as OPERATIONS, operation as operation
from debiaspl.augment.randaugment import Draws as Draws, RandAugment as RandAugment
from debiaspl.augment.views import (
    Crops as Crops,
    Hide as Hide,
    ImageViews as ImageViews,
    VectorViews as VectorViews,
    ViewMaker as ViewMaker,
    Weak as Weak,
)

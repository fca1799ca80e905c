"""EuroSAT: satellite images of ten kinds of land, 64x64.

    debiaspl train --recipe eurosat-40
    debiaspl train --recipe eurosat-40-minutes

    debiaspl train --recipe eurosat-pretrain
    debiaspl train --recipe eurosat-40-start

Not an experiment of the paper's tables; its settings are those of CIFAR-10. A fifth of each class is the test set.
"""

from dataclasses import replace

from debiaspl.recipes.cifar10 import PAPER, from_start, in_minutes
from debiaspl.training import Choice

CELL = "EuroSAT, 4 labels a class"
SIDE = 32
"""Image size of a start: a quarter of the pixels, and of the time."""
FOUR = Choice("few-labels", {"per_class": 4})

RECIPES = (
    replace(
        PAPER,
        name="eurosat-40",
        about="EuroSAT, 4 labels a class: DebiasPL",
        data="eurosat",
        cost="not measured: 2^19 steps a fold",
        protocol=FOUR,
    ),
    *(replace(recipe, data="eurosat") for recipe in in_minutes("eurosat-40", CELL, FOUR)),
    *(
        replace(recipe, data="eurosat", image_size=SIDE)
        for recipe in from_start("eurosat-40", CELL, FOUR, "eurosat-pretrain")
    ),
)

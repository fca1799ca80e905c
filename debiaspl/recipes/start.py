"""Starts: features that are learned without a label, for runs that begin with them (docs/start.md).

    debiaspl pretrain cifar10                                   # a known set: the recipe cifar10-pretrain
    debiaspl pretrain photos/ --out runs/start                  # any folder, with labels or without

MoCo v2 with the teacher of EMAN. PRETRAIN is for a GPU; its settings were found on CIFAR-10, where 54,000 steps gave a
nearest-neighbour accuracy of 88.4 % (results/start/second-search.json). SMALL is for a CPU.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt
from pathlib import Path

from debiaspl.recipes import long_tail
from debiaspl.recipes.cifar10 import CELLS
from debiaspl.recipes.eurosat import SIDE
from debiaspl.training import Choice, Recipe

ALL_TRAINING_IMAGES = Choice("label-share", {"share": 0.1, "labeled_also_unlabeled": True})
"""Every training image of a known set is learned from without its label. A tenth of the labels make the class means by
which features are measured on the test set when all is over; no step sees a label."""

PRETRAIN = Recipe(
    name="start",
    about="features without labels",
    protocol=ALL_TRAINING_IMAGES,
    network=Choice("resnet9", {"widths": (64, 128, 256, 512)}),
    algorithm=Choice("moco", {"temperature": 0.2, "memory": 4096, "key_decay": 0.99}),
    correction=Choice("none"),
    strong=Choice("cropcolor"),
    steps=54_000,
    labeled_batch=0,
    unlabeled_batch=256,
    learning_rate=0.12,
    arc=0.5,
    warm_up=0.02,
    weight_decay=5e-4,
    average_decay=0.99,
    average_statistics=True,
    teacher="average",
    log_every=500,
    checkpoint_every=2500,
)

SMALL = replace(
    PRETRAIN,
    network=Choice("small"),
    algorithm=Choice("moco", {"temperature": 0.2, "memory": 1024, "key_decay": 0.99}),
    steps=1500,
    unlabeled_batch=64,
    learning_rate=0.06,
    average_decay=0.95,
    log_every=50,
    checkpoint_every=100,
)
"""A network that two cores can train in minutes, and that digits and ``debiaspl train PHOTOS`` on a CPU have too."""

LARGEST_SIDE = {"cuda": 64, "cpu": 32}
"""Pixels a side of the photos that a start is trained with, at most."""
IMAGES = {"cuda": 50_000, "cpu": 3_000}
"""Images for which PRETRAIN, whose set is CIFAR-10, and SMALL have their steps."""
LEAST_STEPS = {"cuda": 5_000, "cpu": 300}
NOT_MIRRORED = ("digits", "mnist")
"""Known sets of which a mirrored image is another thing."""


def start_for(images: int, device: str) -> Recipe:
    """PRETRAIN, or SMALL on a CPU, for a set of so many images.

    Steps grow with the square root of the images: a set of a quarter of the images has half of the steps, and sees each
    image twice as often. On a CPU they grow no further than those of SMALL: nobody would wait for more.

    An image is not to be told from itself: a batch holds half of the images at most, and the memory, which has two
    views of each image, a quarter of them; it is left out where it would not hold a batch.
    """
    base, share = (SMALL if device == "cpu" else PRETRAIN), images / IMAGES[device]
    steps = base.steps * sqrt(min(share, 1) if device == "cpu" else share)
    batch = max(min(base.unlabeled_batch, images // 2), 2)
    memory: int = min(base.algorithm.settings["memory"], images // 2)
    settings = {**base.algorithm.settings, "memory": memory if memory >= 2 * batch else 0}
    return replace(
        base,
        steps=max(100 * round(steps / 100), LEAST_STEPS[device]),
        unlabeled_batch=batch,
        algorithm=Choice("moco", settings),
    )


def start_for_known(data: str, images: int, device: str) -> Recipe:
    """The recipe of a known set's start: the one that has its name, where this machine can train it in minutes."""
    own = next((recipe for recipe in RECIPES if recipe.data == data), None)
    if own is not None and (device != "cpu" or own.network.name == SMALL.network.name):
        return own
    name, flip = f"{Path(data).name}-pretrain", data not in NOT_MIRRORED
    return replace(start_for(images, device), name=name, about=f"{data}: features without labels", data=data, flip=flip)


def _of_cells() -> Iterator[Recipe]:
    """Where a protocol says which images there are, a start looks at these alone. They are others in every fold: train
    it with the seed of the run that begins with it."""
    cells = [(name, about, protocol) for name, about, protocol, _, _ in CELLS if protocol.name != "few-labels"]
    cells += [(cell.name, cell.about, cell.protocol) for cell in long_tail.CELLS if cell.data == "cifar10"]
    for name, about, protocol in cells:
        settings = dict(protocol.settings)
        if protocol.name == "long-tail":
            settings["labeled_also_unlabeled"] = True
        yield replace(
            PRETRAIN,
            name=f"{name}-pretrain",
            about=f"{about}: features without labels",
            cost="~100 s on an H200: 20,000 steps a fold",
            data="cifar10",
            protocol=Choice(protocol.name, settings),
            steps=20_000,
        )


RECIPES = (
    replace(
        start_for(1_297, "cpu"),
        name="digits-pretrain",
        about="digits: features without labels",
        cost="~20 s on one core",
        data="digits",
        # A fifth of 8 x 8 pixels shows nothing of a digit.
        strong=Choice("fixmatch"),
        flip=False,
        steps=1000,
    ),
    replace(
        PRETRAIN,
        name="cifar10-pretrain",
        about="CIFAR-10: features without labels",
        cost="4.4 min on an H200: 54,000 steps at 4.9 ms",  # results/start/second-search.json, speed_alone
        data="cifar10",
    ),
    replace(
        PRETRAIN,
        name="eurosat-pretrain",
        about="EuroSAT: features without labels",
        cost="~75 s on an H200: 15,000 steps",
        data="eurosat",
        image_size=SIDE,
        steps=15_000,
    ),
    *_of_cells(),
)

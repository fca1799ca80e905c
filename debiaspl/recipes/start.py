"""Starts: features that are learned without a label, for runs that begin with them (docs/start.md).

    debiaspl train --recipe cifar10-40 --method moco
    debiaspl train photos/ --method moco --out runs/start       # any folder, with labels or without

MoCo v2 with the teacher of EMAN. PRETRAIN is for a GPU; its settings were found on CIFAR-10, where 54,000 steps gave a
nearest-neighbour accuracy of 88.4 % (results/start/second-search.json). SMALL is for a CPU.
"""

from dataclasses import replace
from math import sqrt

from debiaspl.recipes.cells import EUROSAT_SIDE, Cell
from debiaspl.training import Choice, Recipe
from debiaspl.training.method import with_method

PRETRAIN = Recipe(
    name="start",
    about="features without labels",
    # No step sees a label; at the end, a tenth gives the class means that measure the features on the test set.
    protocol=Choice("label-share", {"share": 0.1, "labeled_also_unlabeled": True}),
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
"""A network that two cores can train in minutes, as for digits and for ``debiaspl train PHOTOS`` on a CPU."""


def largest_side(device: str) -> int:
    """The largest image size of a start, in pixels a side."""
    return 32 if device == "cpu" else 64


def start_for(images: int, device: str) -> Recipe:
    """PRETRAIN, or SMALL on a CPU, for a set of this many images.

    Steps grow with the square root of the images; on a CPU they are at most those of SMALL, to keep the time short. An
    image must not be its own negative: a batch holds at most half of the images, and the memory, which has two views of
    each, a quarter of them; there is no memory where it would not hold a batch.
    """
    if device == "cpu":  # the steps are for this number of images
        base, share, least_steps = SMALL, min(images / 3_000, 1), 300
    else:
        base, share, least_steps = PRETRAIN, images / 50_000, 5_000
    batch = max(min(base.unlabeled_batch, images // 2), 2)
    memory: int = min(base.algorithm.settings["memory"], images // 2)
    settings = {**base.algorithm.settings, "memory": memory if memory >= 2 * batch else 0}
    return replace(
        base,
        steps=max(100 * round(base.steps * sqrt(share) / 100), least_steps),
        unlabeled_batch=batch,
        algorithm=Choice("moco", settings),
    )


def start_of_cell(cell: Cell, method: str = "moco") -> Recipe:
    """Features for the recipes of this cell. Those of a long tail are learned from its own images, others in every
    fold: train such a start with the seed of the run that uses it."""
    if not cell.start or cell.data not in SETS:
        raise ValueError(f"{cell.name} has no start of its own. Expected a cell of {', '.join(SETS)}.")
    start, name, about = replace(SETS[cell.data], data=cell.data), cell.start, cell.data
    if name.startswith(cell.name):
        about = cell.about
        cost = "~4 min on an H200: 40,000 steps a fold"  # results/long-tail/fourth-search.json
        start = replace(start, protocol=cell.protocol, steps=40_000, cost=cost)
        if cell.protocol.name == "long-tail":
            start = start.changed(labeled_also_unlabeled=True)
    if method != start.algorithm.name:
        start, name = with_method(start, method), f"{name}-{method}"
    return replace(start, name=name, about=f"{about}: features without labels")


SETS = {
    "digits": replace(
        start_for(1_297, "cpu"),
        cost="~20 s on one core",
        # A fifth of 8 x 8 pixels shows nothing of a digit.
        strong=Choice("fixmatch"),
        flip=False,
        steps=1000,
    ),
    # 54,000 steps at 4.9 ms: results/start/second-search.json, speed_alone
    "cifar10": replace(PRETRAIN, cost="~265 s on an H200: 54,000 steps at 4.9 ms"),
    "eurosat": replace(PRETRAIN, cost="~75 s on an H200: 15,000 steps", image_size=EUROSAT_SIDE, steps=15_000),
}
"""The starts of known sets."""

"""Cells: a data set and which of its images have labels. With a length and a method a cell is a recipe.

    debiaspl train --recipe cifar10-40
    debiaspl train --recipe cifar10-lt100-10pct --length start --method contrastmatch+debiaser --set seed=3
    debiaspl train --recipe cifar10-lt100-10pct --method moco          # features that length start begins with
    debiaspl train --recipe imagenet-1pct --method multiview --workers 16

The cells of the paper's CIFAR-10 and ImageNet tables; the standard long-tail protocols, N1 labels and M1 unlabeled
images of the largest class, distributed as the labels, *uniform* or *reversed* (docs/data.md); EuroSAT; and two for a
CPU. A fold is a seed. The paper's numbers are top-1 % on the balanced test set.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from debiaspl.recipes.lengths import DIGITS, FAST, IMAGENET, MINUTES, PAPER, PROTOCOL, START
from debiaspl.training import Choice, Recipe

EUROSAT_SIDE = 32
"""Image size of EuroSAT's start: a quarter of the pixels, and of the time."""
IMAGENET_IMAGES, IMAGENET_EPOCHS = 1_281_167, 50


@dataclass(frozen=True)
class Cell:
    """One experiment, whatever its length and method."""

    name: str
    about: str
    data: str
    protocol: Choice
    lengths: Mapping[str, Recipe]
    """What its recipes begin with; the first length is the default."""
    start: str = ""
    """The name of the recipe that learns features of its images without labels."""
    papers: Mapping[str, float] = field(default_factory=dict)
    """Method -> the paper's number."""

    def base(self, length: str) -> Recipe:
        """The recipe of its default method, without settings of its own."""
        if length not in self.lengths:
            raise ValueError(f"{self.name} has no length {length!r}. Expected {' or '.join(self.lengths)}.")
        base = replace(self.lengths[length], data=self.data, protocol=self.protocol)
        return replace(base, start=f"runs/{self.start}") if length == "start" else base


_LONG_TAIL_START = {"labeled_also_unlabeled": True}
_FORTY = {"learning_rate": 0.0075, "average_decay": 0.99}
_SIX_THOUSAND = {"steps": 6_000, "cost": "<1 min on an H200, after its start: 6,000 steps a fold"}
_MULTIVIEW = {"views": 2, "view_labels": "paired"}
_SCRIPTS = {"views": 2, "view_labels": "three-sets", "threshold": 0.8, "learning_rate": 0.003, "strength": 0.4}

SETTINGS: dict[tuple[str, str, str], dict[str, Any]] = {
    # The first classifier of the supervised baseline has seen no unlabeled image.
    ("*", "minutes", "supervised"): {"teacher": "auto"},
    ("*", "start", "supervised"): {"teacher": "auto", "learning_rate": 0.03},
    # The best of a later search of both methods: results/start/fifth-search.json.
    ("cifar10-40", "start", "contrastmatch"): _FORTY,
    ("cifar10-40", "start", "contrastmatch+debiaser"): _FORTY,
    # On fold 100 of cifar10-lt100-10pct margins are worse with 3,000 steps and with 14,000: third-search.json and
    # second-search.json in results/long-tail.
    ("two-tails", "start", "*"): _SIX_THOUSAND,
    ("long-tail", "start", "*"): _SIX_THOUSAND,
    # Each with the best settings of its own search on that fold (docs/lab/notebook.md). The other long tails have the
    # same, and were not searched.
    ("long-tail", "start", "contrastmatch"): {**_LONG_TAIL_START, "threshold": 0.98, "average_decay": 0.99},
    ("long-tail", "start", "contrastmatch+debiaser"): {**_LONG_TAIL_START, "average_decay": 0.99},
    ("long-tail", "start", "contrastmatch+margins"): {**_LONG_TAIL_START, "threshold": 0.98},
    # EuroSAT is 64 x 64.
    ("eurosat-40", "start", "*"): {"image_size": EUROSAT_SIDE},
    # Two weak and two strong views, each strong one with the labels of one weak one, and CLD; and as the released
    # scripts run it, with three label sets.
    ("imagenet-1pct", "paper", "multiview"): {**_MULTIVIEW, "cld_weight": 0.3},
    ("imagenet-0.2pct", "paper", "multiview"): {**_MULTIVIEW, "cld_weight": 0.1},
    ("imagenet-1pct", "paper", "scripts"): {**_SCRIPTS, "cld_weight": 0.3},
    ("imagenet-0.2pct", "paper", "scripts"): {**_SCRIPTS, "cld_weight": 0.1},
}
"""(cell, protocol or *; length; method or *) -> what differs from the length's settings. Later ones win."""
VARIANTS = {"multiview": "debiaspl", "scripts": "debiaspl"}
"""Methods that are another one with settings of a cell: the paper's variants on ImageNet."""


def settings_for(cell: Cell, length: str, method: str) -> dict[str, Any]:
    """The settings of its own that a (cell, length, method) carries."""
    return {
        key: value
        for (where, when, what), settings in SETTINGS.items()
        if where in ("*", cell.protocol.name, cell.name) and when == length and what in ("*", method)
        for key, value in settings.items()
    }


def _tail(gamma: float, fraction: float) -> Choice:
    return Choice("long-tail", {"gamma": gamma, "labeled_fraction": fraction})


def _few(per_class: int) -> Choice:
    return Choice("few-labels", {"per_class": per_class})


_MISMATCH = Choice("mismatch", {"gamma": 200.0, "labeled_fraction": 0.1, "unlabeled": "balanced"})
# Name, what it is, protocol, and the paper's numbers of FixMatch and DebiasPL.
_CIFAR10 = (
    ("cifar10-40", "CIFAR-10, 4 labels a class", _few(4), 86.1, 94.6),
    ("cifar10-80", "CIFAR-10, 8 labels a class", _few(8), 92.1, 95.2),
    ("cifar10-250", "CIFAR-10, 25 labels a class", _few(25), 94.9, 95.4),
    ("cifar10-lt100-10pct", "CIFAR-10-LT, 100 to 1, 10 % labeled", _tail(100.0, 0.1), 67.3, 79.2),
    ("cifar10-lt100-30pct", "CIFAR-10-LT, 100 to 1, 30 % labeled", _tail(100.0, 0.3), 73.1, 80.6),
    ("cifar10-lt200-10pct", "CIFAR-10-LT, 200 to 1, 10 % labeled", _tail(200.0, 0.1), 59.7, 71.4),
    ("cifar10-lt200-30pct", "CIFAR-10-LT, 200 to 1, 30 % labeled", _tail(200.0, 0.3), 67.7, 74.1),
    (
        "cifar10-lt200-10pct-balanced",
        "labels long-tailed 200 to 1, 10 %; unlabeled images balanced",
        _MISMATCH,
        72.1,
        83.5,
    ),
)
# Name, what it is, share of labels, momentum of the prior, the numbers of FixMatch, DebiasPL and multi-view.
_IMAGENET = (
    ("imagenet-1pct", "ImageNet, 1 % labeled, drawn by the seed", 0.01, 0.999, 60.9, 63.1, 65.3),
    ("imagenet-0.2pct", "ImageNet, 0.2 % labeled, drawn by the seed", 0.002, 0.99, 43.6, 47.9, 51.6),
)
UNLABELED = ("consistent", "uniform", "reversed")


def _cells() -> Iterator[Cell]:
    tail = Choice("long-tail", {"gamma": 20.0, "labeled_fraction": 0.1})
    digits = {"minutes": DIGITS}
    for name, about, protocol in (
        ("digits-10", "digits, balanced, one label a class", DIGITS.protocol),
        ("digits-lt20-10pct", "digits, long-tailed 20 to 1, 10 % labeled", tail),
    ):
        yield Cell(name, about, "digits", protocol, digits, "digits-pretrain")
    all_lengths = {"paper": PAPER, "fast": FAST, "minutes": MINUTES, "start": START}
    for name, about, protocol, fixmatch, debiaspl in _CIFAR10:
        start = "cifar10-pretrain" if protocol.name == "few-labels" else f"{name}-pretrain"
        papers = {"fixmatch": fixmatch, "debiaspl": debiaspl}
        yield Cell(name, about, "cifar10", protocol, all_lengths, start, papers)
    for data, pairs, gammas in (
        ("cifar10", ((500, 4000), (1500, 3000)), (100, 150)),
        ("cifar100", ((50, 400), (150, 300)), (10, 20)),
    ):
        lengths = {"paper": PROTOCOL, "start": START} if data == "cifar10" else {"paper": PROTOCOL}
        for (labeled, unlabeled), gamma, shape in product(pairs, gammas, UNLABELED):
            name = f"{data}-lt-{labeled}-{unlabeled}-g{gamma}{'' if shape == UNLABELED[0] else f'-{shape}'}"
            title = data.upper().replace("CIFAR", "CIFAR-")
            about = f"{title}-LT, {labeled}/{unlabeled}, {gamma} to 1, unlabeled {shape}"
            sizes = {"labeled_max": labeled, "unlabeled_max": unlabeled, "gamma": float(gamma), "unlabeled": shape}
            protocol = Choice("two-tails", {**sizes, "labeled_also_unlabeled": True})
            yield Cell(name, about, data, protocol, lengths, f"{name}-pretrain" if "start" in lengths else "")
    fixed = {"paper": replace(PAPER, cost="not measured: 2^19 steps a fold"), "minutes": MINUTES, "start": START}
    yield Cell("eurosat-40", "EuroSAT, 4 labels a class", "eurosat", _few(4), fixed, "eurosat-pretrain")
    for name, about, share, momentum, fixmatch, debiaspl, multiview in _IMAGENET:
        images = IMAGENET_IMAGES - round(share * IMAGENET_IMAGES)
        steps = math.ceil(IMAGENET_EPOCHS * images / IMAGENET.unlabeled_batch)
        papers = {"fixmatch": fixmatch, "debiaspl": debiaspl, "multiview": multiview, "scripts": multiview}
        correction = Choice("debiaser", {"strength": 0.5, "momentum": momentum})
        base = replace(IMAGENET, steps=steps, correction=correction)
        yield Cell(name, about, "imagenet", Choice("label-share", {"share": share}), {"paper": base}, "", papers)


CELLS = {cell.name: cell for cell in _cells()}

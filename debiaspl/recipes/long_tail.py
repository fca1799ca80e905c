"""The standard long-tail protocols, N1 labels and M1 unlabeled images of the largest class, with their usual settings.

    debiaspl train --recipe cifar10-lt-500-4000-g100
    debiaspl train --recipe cifar10-lt-500-4000-g100-reversed-fixmatch --set seed=1
    debiaspl train --recipe cifar100-lt-50-400-g10 --set labeled_also_unlabeled=false
    debiaspl train --recipe cifar10-lt-500-4000-g100-pretrain      # about 4 minutes on an H200
    debiaspl train --recipe cifar10-lt-500-4000-g100-start         # less than a minute more

A name says N1, M1 and gamma; what follows says how the unlabeled images are distributed: as the labels (nothing),
*uniform* or *reversed*. Settings are those of DASO's code: WRN-28-2, 64 + 128 images, 250,000 steps, learning rate
0.03. On CIFAR-10 *start* is the short form: features without labels first (*pretrain*, of the same images, so with the
seed of the run that begins with it), then 6,000 steps. Labeled images also serve as unlabeled ones, which is not the
rule of all papers: docs/data.md says whose protocol is which. None of these has a number in the DebiasPL paper. The
sets: debiaspl data get cifar10, debiaspl data get cifar100.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from debiaspl.recipes.cifar10 import from_start
from debiaspl.training import Choice, Recipe

STANDARD = Recipe(
    name="long-tail",
    cost="not measured: 250,000 steps a fold",
    network=Choice("wrn", {"depth": 28, "width": 2}),
    algorithm=Choice("fixmatch", {"threshold": 0.95, "unlabeled_weight": 1.0, "joint": True}),
    correction=Choice("debiaser", {"strength": 0.5, "momentum": 0.99}),
    strong=Choice("fixmatch"),
    steps=250_000,
    labeled_batch=64,
    unlabeled_batch=128,
    learning_rate=0.03,
    log_every=500,
    evaluate_every=5000,
    checkpoint_every=5000,
)
"""Network, batches, steps and learning rate as in DASO's code; ACR and CCL have 64 + 64 images with two strong views.
What is debiased, and how strongly, is as in the DebiasPL paper's own long tails."""

UNLABELED = ("consistent", "uniform", "reversed")


class Cell(NamedTuple):
    """One protocol on one set."""

    data: str
    labeled_max: int
    """N1."""
    unlabeled_max: int
    """M1."""
    gamma: int
    unlabeled: str
    """One of ``UNLABELED``."""

    @property
    def name(self) -> str:
        ending = "" if self.unlabeled == "consistent" else f"-{self.unlabeled}"
        return f"{self.data}-lt-{self.labeled_max}-{self.unlabeled_max}-g{self.gamma}{ending}"

    @property
    def about(self) -> str:
        title = {"cifar10": "CIFAR-10-LT", "cifar100": "CIFAR-100-LT"}[self.data]
        return f"{title}, {self.labeled_max}/{self.unlabeled_max}, {self.gamma} to 1, unlabeled {self.unlabeled}"

    @property
    def protocol(self) -> Choice:
        sizes = {"labeled_max": self.labeled_max, "unlabeled_max": self.unlabeled_max, "gamma": float(self.gamma)}
        return Choice("two-tails", {**sizes, "unlabeled": self.unlabeled, "labeled_also_unlabeled": True})


CELLS = tuple(
    Cell(data, *sizes, gamma, unlabeled)
    for data, pairs, gammas in (
        ("cifar10", ((500, 4000), (1500, 3000)), (100, 150)),
        ("cifar100", ((50, 400), (150, 300)), (10, 20)),
    )
    for sizes, gamma, unlabeled in product(pairs, gammas, UNLABELED)
)


def _recipes() -> Iterator[Recipe]:
    for cell in CELLS:
        debiased = replace(STANDARD, name=cell.name, data=cell.data, protocol=cell.protocol)
        yield replace(debiased, about=f"{cell.about}: DebiasPL")
        plain = replace(debiased, correction=Choice("none"))
        yield replace(plain, name=f"{cell.name}-fixmatch", about=f"{cell.about}: FixMatch")
        if cell.data == "cifar10":
            begun = from_start(cell.name, cell.about, cell.protocol, f"{cell.name}-pretrain")
            yield from (recipe for recipe in begun if recipe.algorithm.name != "supervised")


RECIPES = tuple(_recipes())

"""Cells of the paper's tables without a recipe, and further published numbers of a cell: the paper's other tables, and
other authors' runs of FixMatch.

Top-1 % on the test set. ``MORE`` says how each cell would be run: a recipe and the settings that differ from it.
"""

from typing import NamedTuple

from debiaspl.recipes.imagenet import CELLS as IMAGENET

SOURCES = {
    "paper, add-on": "DebiasPL, CVPR 2022: its table of add-ons; in its main table FixMatch with 40 labels is 86.1, "
    "and 89.7 is FixMatch w/ DA w/ SimCLR",
    "paper, ablation": "DebiasPL, CVPR 2022: its table of parts; FixMatch is 73.1 in its main table",
    "paper, mismatch": "DebiasPL, CVPR 2022: its table of mismatched sets; FixMatch is 59.7 in its main table",
    "FixMatch": "Sohn et al., NeurIPS 2020, with RandAugment, as kekmodel's README.md quotes it",
    "USB": "github.com/microsoft/Semi-supervised-learning, results/classic_cv.csv; the best on the test set",
    "TorchSSL": "github.com/TorchSSL/TorchSSL, README.md; the best on the test set",
    "kekmodel": "github.com/kekmodel/FixMatch-pytorch, README.md; one run",
}
"""Sources of the numbers beside the paper's."""


class Elsewhere(NamedTuple):
    """One number that is not in the paper's main tables."""

    cell: str
    method: str
    accuracy: float
    spread: float | None
    source: str
    """A key of ``SOURCES``."""


ELSEWHERE = (
    Elsewhere("cifar10-40", "FixMatch", 89.7, None, "paper, add-on"),
    Elsewhere("cifar10-40", "FixMatch", 86.19, 3.37, "FixMatch"),
    Elsewhere("cifar10-40", "FixMatch", 91.67, 1.41, "USB"),
    Elsewhere("cifar10-40", "FixMatch", 92.53, 0.28, "TorchSSL"),
    Elsewhere("cifar10-40", "FixMatch", 93.60, None, "kekmodel"),
    Elsewhere("cifar10-250", "FixMatch", 94.93, 0.65, "FixMatch"),
    Elsewhere("cifar10-250", "FixMatch", 95.03, 0.05, "USB"),
    Elsewhere("cifar10-250", "FixMatch", 95.14, 0.05, "TorchSSL"),
    Elsewhere("cifar10-250", "FixMatch", 95.31, None, "kekmodel"),
    Elsewhere("cifar10-lt100-30pct", "FixMatch", 73.5, None, "paper, ablation"),
    Elsewhere("cifar10-lt200-10pct", "FixMatch", 62.3, None, "paper, mismatch"),
)

NOTES = {
    "cifar10-lt200-10pct-balanced": "45,000 balanced unlabeled images here; the paper does not say how many it has.",
}
"""Notes on the numbers of a cell."""


class More(NamedTuple):
    """A further cell of the paper, and how to run it."""

    about: str
    method: str
    paper: float
    recipe: str
    settings: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        return " ".join(["debiaspl train --recipe", self.recipe, *(f"--set {setting}" for setting in self.settings)])


_FORTY, _TAIL = "CIFAR-10, 4 labels a class", "CIFAR-10-LT, 100 to 1, 30 % labeled"
_STRENGTHS = ((0.0, 73.5), (0.25, 79.5), (0.75, 80.5), (1.0, 80.5), (2.0, 77.7))

MORE = (
    *(
        More(f"{_FORTY}; add-on", method, paper, "cifar10-40", (f"algorithm={name}", f"correction={correction}"))
        for name, title, alone, debiased in (("mixmatch", "MixMatch", 47.5, 61.7), ("uda", "UDA", 29.1, 43.2))
        for method, correction, paper in ((title, "none", alone), (f"{title} + DebiasPL", "debiaser", debiased))
    ),
    More(f"{_FORTY}; ablation", "DebiasPL without margin", 93.3, "cifar10-40", ("margin_strength=0",)),
    More(f"{_TAIL}; ablation", "DebiasPL without margin", 79.6, "cifar10-lt100-30pct", ("margin_strength=0",)),
    *(
        More(
            f"{_TAIL}; strength",
            f"DebiasPL, strength={value:g}",
            paper,
            "cifar10-lt100-30pct",
            (f"strength={value:g}",),
        )
        for value, paper in _STRENGTHS
    ),
    *(
        More(about, method, paper, f"{name}{ending}")
        for name, about, _, _, _, (fixmatch, debiaspl, multiview) in IMAGENET
        for method, paper, ending in (
            ("FixMatch with EMAN", fixmatch, "-fixmatch"),
            ("DebiasPL", debiaspl, ""),
            ("DebiasPL, multi-view and CLD", multiview, "-multiview"),
        )
    ),
)

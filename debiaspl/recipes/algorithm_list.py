"""The algorithms as a table: what each does, its paper and what it needs, from what their modules say."""

import inspect
import re
import sys
from typing import Any, NamedTuple

import torch

from debiaspl import algorithms
from debiaspl.algorithms import Algorithm
from debiaspl.data import Hints
from debiaspl.debias import CORRECTIONS

GROUPS = ("ALGORITHMS", "HINTED", "STARTS")
"""Names in ``debiaspl.algorithms``."""


ABOUT = {
    "supervised": "labeled images only, the baseline",
    "pseudolabel": "confident predictions become labels of the same image",
    "mean-teacher": "predict what the average of past weights predicts",
    "uda": "strong views predict the sharpened soft label of the weak view",
    "mixmatch": "labels averaged over views, images mixed (MixUp)",
    "remixmatch": "MixMatch with strong views, alignment and rotations",
    "fixmatch": "strong views learn the confident label of the weak view; with the debiaser: DebiasPL",
    "contrastmatch": "FixMatch plus a contrastive loss between views",
    "flexmatch": "FixMatch with a lower threshold for classes learned less well",
    "freematch": "FixMatch with thresholds that follow the model",
    "softmatch": "FixMatch with a weight instead of a threshold",
    "comatch": "FixMatch with labels smoothed over similar images",
    "crest": "FixMatch in generations: confident labels of rare classes join the labels",
    "crest+": "CReST with distribution alignment",
    "adamatch": "FixMatch for labels and images that look different",
    "abc": "FixMatch with a second, balanced classifier",
    "acr": "two classifiers, adjusted to the classes of the unlabeled images",
    "paws": "predict by similarity to the labeled images, two views alike",
    "graph": "learn labels that spread over a graph of the features",
    "taught": "FixMatch; another model's label where it is not sure itself",
    "distill": "learn what a trained run predicts",
    "moco": "find the other view of an image among earlier ones",
    "simclr": "find the other view of an image in the batch",
    "swav": "predict the cluster of the other view",
}
"""In a line. An algorithm that is not here has the first sentence of its docstring."""
_TOLD: dict[str, Any] = {
    "num_classes": 2,
    "num_features": 2,
    "num_unlabeled": 2,
    "class_counts": (1, 1),
    "classes": ("a", "b"),
    "channels": 3,
    "hints": Hints(torch.zeros(2, dtype=torch.int64), torch.ones(2)),
}
"""What a run would tell a constructor."""


class AlgorithmRow(NamedTuple):
    """One algorithm, with its default settings."""

    name: str
    group: str
    """One of ``GROUPS``."""
    about: str
    paper: str
    """Authors and year; empty where it is our own."""
    needs: str
    """What it learns from."""
    views: str
    """Weak + strong views of each unlabeled image; more views take more time."""
    frozen: bool
    """Whether it works with a frozen encoder."""


def algorithm_list() -> list[AlgorithmRow]:
    """Every algorithm that a recipe can name."""
    return [_row(name, group, made) for group in GROUPS for name, made in getattr(algorithms, group).items()]


def _row(name: str, group: str, made: type[Algorithm]) -> AlgorithmRow:
    settings = inspect.signature(made).parameters
    told = {key: value for key, value in _TOLD.items() if key in settings}
    own = CORRECTIONS[made.own_correction]  # some accept no other
    correction = own(**{key: value for key, value in _TOLD.items() if key in inspect.signature(own).parameters})
    built: Algorithm | type[Algorithm] = made
    if "teacher_run" not in settings:  # it would read that run
        built = made(**told, correction=correction)
    needs = "images" if not made.learns_labels else "labels, images" if made.makes_pseudo_labels else "labels"
    needs += ", other labels" if "hints" in settings else ", a trained run" if "teacher_run" in settings else ""
    views = f"{built.views.weak} + {built.views.strong}"
    return AlgorithmRow(
        name, group, ABOUT.get(name) or _about(made), _paper(made), needs, views, not built.needs_pictures
    )


def _about(made: type[Algorithm]) -> str:
    """The first sentence of its docstring, or what stands before a colon."""
    text = " ".join((inspect.getdoc(made) or "").split()).replace("``", "")
    return re.split(r"(?<=[.:]) ", text, maxsplit=1)[0].rstrip(".:")


def _paper(made: type[Algorithm]) -> str:
    """The first (authors, year) of its module's first line."""
    first = (sys.modules[made.__module__].__doc__ or "").partition("\n")[0]
    found = re.search(r"\((?:[^()]*: )?([^():]*\b(?:19|20)\d\d)\)", first)
    return found[1] if found else ""

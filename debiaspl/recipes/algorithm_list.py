"""The algorithms as a table: what each does, its paper and what it needs, from what they say of themselves."""

import inspect
import re
import sys
from typing import Any

import torch

from debiaspl import algorithms
from debiaspl.algorithms import Algorithm
from debiaspl.data import Hints
from debiaspl.training.parts import build

_KNOWN: dict[str, Any] = {
    "num_classes": 2,
    "num_features": 2,
    "num_unlabeled": 2,
    "class_counts": (1, 1),
    "classes": ("a", "b"),
    "channels": 3,
    "hints": Hints(torch.zeros(2, dtype=torch.int64), torch.ones(2)),
}
"""What a run would pass to a constructor."""


def algorithm_list() -> list[dict[str, Any]]:
    """Each algorithm with its default settings; ``group`` is its dictionary in ``debiaspl.algorithms``."""
    groups = ("ALGORITHMS", "HINTED", "STARTS")
    return [_row(name, group, made) for group in groups for name, made in getattr(algorithms, group).items()]


def _row(name: str, group: str, made: type[Algorithm]) -> dict[str, Any]:
    settings = inspect.signature(made).parameters
    built: Algorithm | type[Algorithm] = made
    if "teacher_run" not in settings:  # it would read that run
        correction = build("correction", made.own_correction, {}, **_KNOWN)  # some accept no other
        built = build("algorithm", name, {}, correction=correction, **_KNOWN)
    needs = "images" if not made.learns_labels else "labels, images" if made.makes_pseudo_labels else "labels"
    needs += ", other labels" if "hints" in settings else ", a trained run" if "teacher_run" in settings else ""
    line = made.about or (sys.modules[made.__module__].__doc__ or "").partition("\n")[0]
    # The first sentence, without the name and the paper before a colon.
    about = re.split(r"\d\d\d\d\): ", line, maxsplit=1)[-1].partition(". ")[0]
    paper = re.search(r"\((?:[^()]*: )?([^():]*\b(?:19|20)\d\d)\)", line)
    return {
        "name": name,
        "group": group,
        "about": re.sub(r" \([^()]*\d\d\d\d\)", "", about).rstrip("."),
        "paper": paper[1] if paper else "",
        "needs": needs,
        "views": f"{built.views.weak} + {built.views.strong}",
        "frozen": not built.needs_pictures,
    }

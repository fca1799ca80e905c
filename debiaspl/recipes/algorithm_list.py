"""The algorithms as a table: what each does, its paper and what it needs, from what they say of themselves."""

import inspect
import re
import sys
from typing import Any, NamedTuple

import torch

from debiaspl import algorithms
from debiaspl.algorithms import Algorithm
from debiaspl.data import Hints
from debiaspl.training.parts import build

GROUPS = ("ALGORITHMS", "HINTED", "STARTS")
"""Names in ``debiaspl.algorithms``."""

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
    return [_row(name, group, made) for group in GROUPS for name, made in getattr(algorithms, group).items()]


def _row(name: str, group: str, made: type[Algorithm]) -> AlgorithmRow:
    settings = inspect.signature(made).parameters
    built: Algorithm | type[Algorithm] = made
    if "teacher_run" not in settings:  # it would read that run
        correction = build("correction", made.own_correction, {}, **_TOLD)  # some accept no other
        built = build("algorithm", name, {}, correction=correction, **_TOLD)
    needs = "images" if not made.learns_labels else "labels, images" if made.makes_pseudo_labels else "labels"
    needs += ", other labels" if "hints" in settings else ", a trained run" if "teacher_run" in settings else ""
    views = f"{built.views.weak} + {built.views.strong}"
    return AlgorithmRow(name, group, _about(made), _paper(made), needs, views, not built.needs_pictures)


def _first_line(made: type[Algorithm]) -> str:
    return made.about or (sys.modules[made.__module__].__doc__ or "").partition("\n")[0]


def _about(made: type[Algorithm]) -> str:
    """The first sentence, without the name and the paper before a colon."""
    text = re.split(r"\d\d\d\d\): ", _first_line(made), maxsplit=1)[-1]
    return re.sub(r" \([^()]*\d\d\d\d\)", "", text.partition(". ")[0]).rstrip(".")


def _paper(made: type[Algorithm]) -> str:
    found = re.search(r"\((?:[^()]*: )?([^():]*\b(?:19|20)\d\d)\)", _first_line(made))
    return found[1] if found else ""

"""The parts that a recipe names, and how each is built from its settings and from what the run knows."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from debiaspl.algorithms import ALGORITHMS
from debiaspl.augment import RandAugment
from debiaspl.data import PROTOCOLS
from debiaspl.debias import CORRECTIONS
from debiaspl.models import MODELS

STRONG: dict[str, Callable[..., RandAugment]] = {
    "fixmatch": partial(RandAugment, **asdict(RandAugment.fixmatch())),
    "benchmark": partial(RandAugment, **asdict(RandAugment.benchmark())),
}

PARTS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "protocol": PROTOCOLS,
    "network": MODELS,
    "algorithm": ALGORITHMS,
    "correction": CORRECTIONS,
    "strong": STRONG,
}

# Arguments that the run supplies to those parts that name them. Nobody can set them, and a part that does not name
# one cannot know it: what a correction needs of the true class counts is seen in its signature.
SUPPLIED = ("num_classes", "num_features", "num_unlabeled", "class_counts", "channels", "correction")


def find(kind: str, name: str) -> Any:
    """What builds the part of this kind and name."""
    parts = PARTS[kind]
    if name not in parts:
        raise ValueError(f"there is no {kind} named {name!r}; there are {listed(parts)}.")
    return parts[name]


def settings_of(kind: str, name: str) -> dict[str, Any]:
    """The settings of a part, with their defaults: the arguments of what builds it, but for what the run supplies."""
    arguments = inspect.signature(find(kind, name)).parameters
    return {key: argument.default for key, argument in arguments.items() if key not in (*SUPPLIED, "args", "kwargs")}


def build(kind: str, name: str, settings: Mapping[str, Any], **known: Any) -> Any:
    """A part with its settings; of what is ``known`` it gets what its constructor names, and nothing else."""
    builder = find(kind, name)
    named = inspect.signature(builder).parameters
    return builder(**{key: value for key, value in known.items() if key in named}, **settings)


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names))) or "none"

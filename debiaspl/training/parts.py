"""The parts that a recipe names, and how each is built from its settings and from what the run knows."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS, Algorithm
from debiaspl.algorithms.together import nothing
from debiaspl.augment import CropColor, Hide, RandAugment
from debiaspl.data import PROTOCOLS
from debiaspl.debias import CORRECTIONS, PLUS, CompositeBuilder, Correction
from debiaspl.encoders import NETWORKS
from debiaspl.models import LinearNetwork
from debiaspl.training.own_file import is_loaded, load_class, names_file

STRONG: dict[str, Callable[..., Any]] = {
    "fixmatch": partial(RandAugment, **asdict(RandAugment.fixmatch())),
    "benchmark": partial(RandAugment, **asdict(RandAugment.benchmark())),
    "cropcolor": CropColor,
    "hide": Hide,
}

LINEAR = "linear"
"""The network that is for vectors, and not for pictures."""

NOTHING = "none"
"""What is named where no algorithm is trained beside another."""

PARTS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "protocol": PROTOCOLS,
    "network": {**NETWORKS, LINEAR: LinearNetwork},
    "algorithm": {**ALGORITHMS, **HINTED, **STARTS},
    "correction": CORRECTIONS,
    "strong": STRONG,
    # Last: a name that two parts have, such as temperature, is not its own unless written beside.temperature.
    "beside": {NOTHING: nothing, **STARTS},
}

# What a user's own file may hold, named PATH.py:ClassName, and what such a class must extend.
OWN: dict[str, type] = {"algorithm": Algorithm, "correction": Correction}

# Arguments that the run supplies to those parts that name them. Nobody can set them, and a part that does not name
# one cannot know it: what a correction needs of the true class counts is seen in its signature.
SUPPLIED = (
    *("num_classes", "num_features", "num_unlabeled", "class_counts", "channels", "correction"),
    *("classes", "unlabeled_ids", "hints"),
)


def find(kind: str, name: str) -> Any:
    """What builds the part of this kind and name. A file that the name names is executed, if it has not been."""
    if kind in OWN and names_file(name):
        return _checked(kind, name, load_class(name, OWN[kind]))
    parts = PARTS[kind]
    if kind == "correction" and PLUS in name:
        return CompositeBuilder(name, CORRECTIONS)
    if name not in parts:
        own = f" Of a file of your own, name the class too: {kind}=mine.py:Mine." if kind in OWN else ""
        raise ValueError(f"there is no {kind} named {name!r}; there are {listed(parts)}.{own}")
    return parts[name]


def is_at_hand(kind: str, name: str) -> bool:
    """Whether ``find`` would execute nothing: the part is debiaspl's own, or its file has been loaded before."""
    return kind not in OWN or not names_file(name) or is_loaded(name)


def settings_of(kind: str, name: str) -> dict[str, Any]:
    """The settings of a part, with their defaults: the arguments of what builds it, but for what the run supplies."""
    return {key: item.default for key, item in _arguments(find(kind, name)).items() if key not in SUPPLIED}


def check_settings(kind: str, name: str, settings: Iterable[str]) -> None:
    known = settings_of(kind, name)
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise ValueError(f"{kind} {name!r} has no setting {', '.join(unknown)}; it has {listed(known)}.")


def build(kind: str, name: str, settings: Mapping[str, Any], **known: Any) -> Any:
    """A part with its settings; of what is ``known`` it gets what its constructor names, and nothing else."""
    check_settings(kind, name, settings)
    builder = find(kind, name)
    named = _arguments(builder)
    return builder(**{key: value for key, value in known.items() if key in named}, **settings)


def _arguments(builder: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """What can be given by name; where a constructor takes ``**others`` for its parent, also what the parent names."""
    named: dict[str, inspect.Parameter] = {}
    for source in inspect.getmro(builder) if isinstance(builder, type) else (builder,):
        parameters = inspect.signature(source).parameters.values()
        named = {
            item.name: item for item in parameters if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
        } | named
        if all(item.kind != item.VAR_KEYWORD for item in parameters):
            break
    return named


def _checked(kind: str, name: str, builder: type) -> type:
    """A user's own class, if a run can build it."""
    named = _arguments(builder)
    if kind == "algorithm" and "correction" not in named:
        raise ValueError(
            f"the constructor of {name} takes no correction, so none would ever be used. "
            "Write: def __init__(self, correction=None, ...) and hand it on: super().__init__(correction)."
        )
    without = [key for key, item in named.items() if key not in SUPPLIED and item.default is item.empty]
    if without:
        raise ValueError(
            f"the constructor of {name} gives {', '.join(without)} no default. Arguments are settings, which need one; "
            f"what a run supplies is called {listed(SUPPLIED)}."
        )
    return builder


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names))) or "none"

"""DebiasPL: train image classifiers from a few labels, with debiased pseudo-labels.

Names are imported on first use: ``import debiaspl.debias`` imports only torch, and ``debiaspl --help`` not even that.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from debiaspl._version import __version__

if TYPE_CHECKING:
    from debiaspl import recipes
    from debiaspl.algorithms import Algorithm
    from debiaspl.data import ImageSet, Task
    from debiaspl.debias import Correction, Debiaser
    from debiaspl.deploy import load_model
    from debiaspl.estimator import DebiasedClassifier
    from debiaspl.photos.api import train_photos
    from debiaspl.recipes import recipe
    from debiaspl.training import Choice, Recipe, train
    from debiaspl.zeroshot import ZeroShot

_HOMES = {
    "Algorithm": "debiaspl.algorithms",
    "Choice": "debiaspl.training",
    "Correction": "debiaspl.debias",
    "DebiasedClassifier": "debiaspl.estimator",
    "Debiaser": "debiaspl.debias",
    "ImageSet": "debiaspl.data",
    "Recipe": "debiaspl.training",
    "Task": "debiaspl.data",
    "ZeroShot": "debiaspl.zeroshot",
    "load_model": "debiaspl.deploy",
    "recipe": "debiaspl.recipes",
    "train": "debiaspl.training",
    "train_photos": "debiaspl.photos.api",
}

__all__ = [
    "Algorithm",
    "Choice",
    "Correction",
    "DebiasedClassifier",
    "Debiaser",
    "ImageSet",
    "Recipe",
    "Task",
    "ZeroShot",
    "__version__",
    "load_model",
    "recipe",
    "recipes",
    "train",
    "train_photos",
]


def __getattr__(name: str) -> Any:
    if name == "recipes":
        return import_module("debiaspl.recipes")
    if name not in _HOMES:
        raise AttributeError(f"module 'debiaspl' has no attribute {name!r}. It has {', '.join(sorted(_HOMES))}.")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""DebiasPL: train image classifiers from a few labels, with debiased pseudo-labels.

Names are imported on first use: ``import debiaspl.debias`` imports only torch, and ``debiaspl --help`` not even that.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from debiaspl._version import __version__ as __version__

if TYPE_CHECKING:
    from debiaspl import recipes as recipes
    from debiaspl.algorithms import Algorithm as Algorithm
    from debiaspl.data import ImageSet as ImageSet, Task as Task
    from debiaspl.debias import Correction as Correction, Debiaser as Debiaser
    from debiaspl.deploy import load_model as load_model
    from debiaspl.estimator import DebiasedClassifier as DebiasedClassifier
    from debiaspl.photos.api import train_photos as train_photos
    from debiaspl.recipes import recipe as recipe
    from debiaspl.training import Choice as Choice, Recipe as Recipe, train as train
    from debiaspl.zeroshot import ZeroShot as ZeroShot

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

__all__ = sorted([*_HOMES, "__version__", "recipes"])


def __getattr__(name: str) -> Any:
    if name == "recipes":
        return import_module("debiaspl.recipes")
    if name not in _HOMES:
        raise AttributeError(f"module 'debiaspl' has no attribute {name!r}. It has {', '.join(sorted(_HOMES))}.")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

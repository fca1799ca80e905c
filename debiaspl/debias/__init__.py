"""Corrections of a biased prediction. This room imports torch alone: lift it into a project of your own."""

from collections.abc import Callable

from debiaspl.debias.correction import Correction
from debiaspl.debias.debiaser import Debiaser


def _none(num_classes: int) -> Correction:
    return Correction()


# By name; each is built with the number of classes and its own settings.
CORRECTIONS: dict[str, Callable[..., Correction]] = {"none": _none, "debiaser": Debiaser}

__all__ = ["CORRECTIONS", "Correction", "Debiaser"]

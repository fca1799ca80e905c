"""Corrections of a biased prediction. This room imports torch alone: lift it into a project of your own."""

from collections.abc import Callable

from debiaspl.debias.correction import Correction, Traits
from debiaspl.debias.debiaser import Debiaser

# By name; each is built with what its constructor names of the data (num_classes, class_counts), and its own settings.
CORRECTIONS: dict[str, Callable[..., Correction]] = {"none": Correction, "debiaser": Debiaser}

__all__ = ["CORRECTIONS", "Correction", "Debiaser", "Traits"]

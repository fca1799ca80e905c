"""A table of features: the classifier that is fitted to it in memory, and how it is checked."""

from debiaspl.features.fit import Fitted, FeatureTable, fit, fit_recipe

__all__ = ["Fitted", "FeatureTable", "fit", "fit_recipe"]

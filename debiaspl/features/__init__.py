"""A table of features: the classifier that is fitted to it in memory, and how it is checked."""

from debiaspl.features.fit import FeatureTable, Fitted, fit, fit_recipe

__all__ = ["FeatureTable", "Fitted", "fit", "fit_recipe"]

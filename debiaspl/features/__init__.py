"""A table of features: the classifier that is fitted to it in memory, how it is checked, and which rows to label."""

from debiaspl.features.coverage import choose
from debiaspl.features.fit import Fitted, TableTask, fit, fit_recipe
from debiaspl.features.table import FeatureTable

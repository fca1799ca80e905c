"""A table of features: the classifier that is fitted to it in memory, how it is checked, and which rows to label."""

from debiaspl.features.coverage import choose as choose
from debiaspl.features.fit import Fitted as Fitted, TableTask as TableTask, fit as fit, fit_recipe as fit_recipe
from debiaspl.features.table import FeatureTable as FeatureTable

"""A classifier of feature vectors from a handful of labels: what a frozen encoder gives, or any table of numbers."""

from debiaspl.vectors.fit import FittedHead, fit_head

LEARNED = ("fixmatch", "supervised")
"""Algorithms that a head can be learned with, by name."""

__all__ = ["LEARNED", "FittedHead", "fit_head"]

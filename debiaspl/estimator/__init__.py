"""The scikit-learn interface."""

from debiaspl.estimator.classifier import DebiasedClassifier

__all__ = ["DebiasedClassifier"]

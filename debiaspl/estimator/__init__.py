"""The scikit-learn face."""

from debiaspl.estimator.classifier import DebiasedClassifier

__all__ = ["DebiasedClassifier"]

"""The scikit-learn interface."""

from debiaspl.estimator.classifier import DebiasedClassifier as DebiasedClassifier

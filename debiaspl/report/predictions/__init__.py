"""Predictions of any origin: a file somebody brings, or the folder of a run."""

from debiaspl.report.predictions.classes import parse_classes
from debiaspl.report.predictions.errors import PredictionsError
from debiaspl.report.predictions.predictions import Predictions, predictions_from
from debiaspl.report.predictions.raw import Names, Raw
from debiaspl.report.predictions.read import read_predictions
from debiaspl.report.predictions.scores import Scores

__all__ = [
    "Names",
    "Predictions",
    "PredictionsError",
    "Raw",
    "Scores",
    "parse_classes",
    "predictions_from",
    "read_predictions",
]

"""Read predictions from any source: a file, or the folder of a run."""

from debiaspl.predictions.classes import parse_classes
from debiaspl.predictions.predictions import Predictions, predictions_from
from debiaspl.predictions.read import read_predictions
from debiaspl.predictions.scores import Scores
from debiaspl.predictions.table import Names, PredictionsError, Raw

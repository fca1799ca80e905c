"""Read predictions from any source: a file, or the folder of a run."""

from debiaspl.predictions.classes import parse_classes as parse_classes
from debiaspl.predictions.predictions import Predictions as Predictions, predictions_from as predictions_from
from debiaspl.predictions.read import read_predictions as read_predictions
from debiaspl.predictions.scores import Scores as Scores
from debiaspl.predictions.table import Names as Names, PredictionsError as PredictionsError, Raw as Raw

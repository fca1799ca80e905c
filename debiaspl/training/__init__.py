"""Trains a recipe into a run folder."""

from debiaspl.training.loop import train
from debiaspl.training.parallel import Job, train_all
from debiaspl.training.process import Interrupted, RunError
from debiaspl.training.recipe import Choice, Recipe
from debiaspl.training.run import Run
from debiaspl.training.settings import parse_settings

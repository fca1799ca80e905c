"""Trains a recipe into a run folder."""

from debiaspl.training.loop import train as train
from debiaspl.training.parallel import Job as Job, train_all as train_all
from debiaspl.training.process import Interrupted as Interrupted, RunError as RunError
from debiaspl.training.recipe import Choice as Choice, Recipe as Recipe
from debiaspl.training.run import Run as Run
from debiaspl.training.settings import parse_settings as parse_settings

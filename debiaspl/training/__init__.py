"""Trains a recipe into a run folder."""

from debiaspl.training.errors import Interrupted, RunError
from debiaspl.training.loop import train
from debiaspl.training.parallel import Job, train_all
from debiaspl.training.recipe import Choice, Recipe
from debiaspl.training.run import Run

__all__ = ["Choice", "Interrupted", "Job", "Recipe", "Run", "RunError", "train", "train_all"]

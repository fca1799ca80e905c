"""Builds the algorithm of a recipe, with its correction."""

from typing import Any

import torch

from debiaspl.algorithms import Algorithm
from debiaspl.data import Task
from debiaspl.models import first_heads
from debiaspl.training.recipe import Recipe
from debiaspl.training.returned import check_correction


def algorithm_of(recipe: Recipe, task: Task, num_features: int) -> Algorithm:
    """The algorithm of a run. Raises if its parts do not fit together; nothing is computed."""
    known: dict[str, Any] = {
        "num_classes": task.labeled.num_classes,
        "num_features": num_features,
        "num_unlabeled": len(task.unlabeled),
        "class_counts": tuple(task.labeled.counts()),
        "classes": task.labeled.classes,
        "channels": task.labeled.channels,
        "unlabeled_ids": task.unlabeled.ids,
        "hints": task.hints,
    }
    correction = recipe.correction.build("correction", **known)
    check_correction(correction, num_features, task.labeled.num_classes)
    with torch.random.fork_rng(devices=[]):  # heads have initial weights too
        torch.manual_seed(recipe.seed)
        algorithm: Algorithm = recipe.algorithm.build("algorithm", correction=correction, **known)
    _check_generations(recipe, algorithm)
    return algorithm


def take_over_heads(algorithm: Algorithm, start: str) -> None:
    """Copy the heads that the algorithm of a start has trained, if both have the same ones. Not with generations: each
    must begin with the same heads, even after a resume when the start is gone."""
    if algorithm.generations == 1:
        own = algorithm.state_dict()
        algorithm.load_state_dict(own | first_heads(start, own, algorithm.heads))


def _check_generations(recipe: Recipe, algorithm: Algorithm) -> None:
    if recipe.steps < algorithm.generations:
        raise ValueError(f"there are {algorithm.generations} generations in {recipe.steps} steps. Use more steps.")
    if algorithm.generations > 1 and type(algorithm).adopt is Algorithm.adopt:
        raise ValueError(
            f"{type(algorithm).__name__} has {algorithm.generations} generations, expected a method "
            "adopt(probabilities, generation) that returns the labels for the next one."
        )

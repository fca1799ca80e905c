"""From a recipe to its algorithm: with its correction, and with what is trained beside it."""

from dataclasses import fields
from typing import Any

import torch

from debiaspl.algorithms import Algorithm, Together
from debiaspl.data import Task
from debiaspl.models import first_heads
from debiaspl.training.recipe import Recipe


def algorithm_of(recipe: Recipe, task: Task, num_features: int) -> Algorithm:
    """What learns from the batches of a run. Raises at parts that do not go together; nothing is computed."""
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
    with torch.random.fork_rng(devices=[]):  # heads have first weights too
        torch.manual_seed(recipe.seed)
        main: Algorithm = recipe.algorithm.build("algorithm", correction=correction, **known)
        other: Algorithm | None = recipe.beside.build("beside", **known)
    _check_generations(recipe, main)
    if other is not None:
        return Together(main, other, recipe.beside_weight, recipe.beside_until)
    _refuse_settings_of_nothing(recipe)
    return main


def take_over_heads(algorithm: Algorithm, start: str) -> None:
    """Go on with what the algorithm of a start has trained beside its network, where both have the same heads. Not in
    generations: each begins with the same heads, also where a stop lies before it and the start is gone."""
    for part in algorithm.parts() if algorithm.generations == 1 else ():
        own = part.state_dict()
        part.load_state_dict(own | first_heads(start, own, part.heads))


def _check_generations(recipe: Recipe, algorithm: Algorithm) -> None:
    if recipe.steps < algorithm.generations:
        raise ValueError(f"{algorithm.generations} generations in {recipe.steps} steps, expected one each or more.")
    if algorithm.generations > 1 and type(algorithm).adopt is Algorithm.adopt:
        raise ValueError(
            f"{type(algorithm).__name__} has {algorithm.generations} generations, expected a method "
            "adopt(probabilities, generation) that says which labels the next one takes over."
        )


def _refuse_settings_of_nothing(recipe: Recipe) -> None:
    """Settings of what is trained beside the algorithm, where nothing is."""
    for item in fields(recipe):
        value = getattr(recipe, item.name)
        if item.name.startswith("beside_") and value != item.default:
            raise ValueError(
                f"{item.name} is {value}, but beside is {recipe.beside.name}: it would do nothing. Leave it out, or "
                "name a self-supervised algorithm, with beside=NAME."
            )

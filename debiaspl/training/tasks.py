"""Makes the task of a run, from its recipe or from data in memory."""

from dataclasses import replace
from typing import Any

from debiaspl.data import PROTOCOLS, GivenLabels, ImageSet, NoLabels, Task, TrainTest, open_data, with_test_set
from debiaspl.training.recipe import Choice, Recipe

Data = Task | TrainTest | ImageSet | tuple[Any, Any]
"""A task; a set with a test set; images; or a pair of arrays: images, and class numbers, -1 for none, or None if no
image has a label."""


def task_of(recipe: Recipe, data: Data | None = None) -> Task:
    """The task of this recipe, on its own data or on ``data``."""
    if isinstance(data, Task):
        return data
    protocol = PROTOCOLS[recipe.protocol.name](**recipe.protocol.settings)
    if isinstance(protocol, NoLabels) and recipe.validation:
        raise ValueError(f"validation is {recipe.validation}, but there are no labels to hold out. Leave it out.")
    if data is None:
        read = protocol.read if isinstance(protocol, GivenLabels | NoLabels) else open_data
        data = read(recipe.data, recipe.image_size, recipe.stream)
    elif isinstance(data, tuple):
        data = ImageSet.of(*data)
    if isinstance(data, ImageSet):
        if isinstance(protocol, GivenLabels):
            return Task.of_given(data, protocol, recipe.seed, recipe.validation)
        if isinstance(protocol, NoLabels):
            return Task.of_unlabeled(data)
        data = with_test_set(data)
    if isinstance(protocol, GivenLabels):
        raise ValueError("the data have a test set, but the protocol is given, which needs labels of a single folder.")
    return Task.of(data, protocol, recipe.seed, recipe.validation)


def given_task(recipe: Recipe, data: Data) -> tuple[Recipe, Data]:
    """The recipe and the data of a run on data in memory. If some labels are missing, all given ones are used, instead
    of the recipe's protocol, which would hide labels."""
    if isinstance(data, tuple):
        data = ImageSet.of(*data)
    if not isinstance(data, Task | TrainTest | ImageSet):
        expected = "a Task, an ImageSet, or a pair: images, and class numbers or None"
        todo = "For a folder or a known set, use replace(recipe, data=...)."
        raise TypeError(f"data is a {type(data).__name__}, expected {expected}. {todo}")
    protocol = recipe.protocol
    if isinstance(data, Task):
        if data.labeled.is_encoded:
            raise ValueError("the task contains vectors, but a run needs images. For vectors, use DebiasedClassifier.")
        if recipe.validation:
            raise ValueError("validation is set, but a task has its own: Task(..., validation=images).")
        protocol = Choice("given" if data.has_labels else "no-labels")
    elif isinstance(data, ImageSet) and bool((data.labels < 0).any()):
        protocol = Choice("no-labels" if bool((data.labels < 0).all()) else "given")
    return replace(recipe, data="in memory", protocol=protocol), data

"""Recipes of starts: what is chosen for sets of all sizes, and that digits learn something."""

import pytest

from debiaspl.data import Task, load
from debiaspl.recipes import recipe as recipe_of
from debiaspl.recipes.start import PRETRAIN, SMALL, start_for
from debiaspl.training import train
from debiaspl.training.parts import find
from debiaspl.training.tasks import task_of


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_no_image_is_told_from_itself_and_larger_sets_have_more_steps(device):
    before = 0
    for images in (10, 30, 100, 300, 511, 600, 1023, 1024, 5_000, 50_000, 1_281_167):
        chosen = start_for(images, device)
        batch, memory = chosen.unlabeled_batch, chosen.algorithm.settings["memory"]
        assert batch <= images / 2
        assert memory == 0 or 2 * batch <= memory <= images / 2
        assert chosen.steps >= before
        before = chosen.steps
    assert not find("algorithm", chosen.algorithm.name).learns_labels


def test_the_sizes_that_were_measured():
    assert start_for(50_000, "cuda") == PRETRAIN
    assert start_for(12_500, "cuda").steps == 27_000
    assert start_for(10**6, "cpu") == SMALL


def test_every_training_image_of_digits_is_learned_from():
    recipe = recipe_of("digits-10", method="moco")
    task: Task = task_of(recipe)
    assert len(task.unlabeled) == len(load("digits").train)
    assert (task.unlabeled.labels == -1).all()
    assert recipe.labeled_batch == 0


@pytest.mark.slow(seconds=40)
def test_digits_learn_features(tmp_path):
    """Half of the steps: one run had 89 % after 600 of them, and 78 % with random weights."""
    recipe = recipe_of("digits-10", method="moco").changed(steps=500)
    random = train(recipe.changed(steps=1, learning_rate=0), tmp_path / "random")
    assert train(recipe, tmp_path / "learned")["accuracy"] > random["accuracy"] + 0.05

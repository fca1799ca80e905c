"""Recipes: frozen, written and read again, changed by key=value."""

import dataclasses
import json
import re

import pytest

from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS
from debiaspl.recipes import RECIPES, recipe
from debiaspl.training import Choice, Recipe
from debiaspl.training.parts import PARTS
from tests.training.tiny import TINY, changed


def test_a_recipe_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TINY.steps = 3


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_that_was_written_and_read_is_equal(name):
    written = json.dumps(RECIPES[name].to_json())
    assert Recipe.from_json(json.loads(written)) == RECIPES[name]


def test_settings_reach_fields_and_parts():
    new = changed(TINY, "steps=7", "flip=true", "learning_rate=1e-2", "strength=0.25", "threshold=0.5")
    assert (new.steps, new.flip, new.learning_rate) == (7, True, 0.01)
    assert new.correction == Choice("debiaser", {"strength": 0.25})
    assert new.algorithm.settings["threshold"] == 0.5
    assert changed(TINY, "correction.momentum=0.9").correction.settings == {"momentum": 0.9}
    assert changed(TINY, "operations=rotate, shear_x").strong.settings == {"operations": ("rotate", "shear_x")}
    assert changed(TINY, "cutout=0,0").strong.settings == {"cutout": (0.0, 0.0)}


def test_a_new_part_keeps_the_settings_it_knows():
    new = TINY.changed(threshold=0.5, joint=True).changed(algorithm="pseudolabel")
    assert new.algorithm == Choice("pseudolabel", {"threshold": 0.5})
    assert changed(TINY, "correction=none").correction == Choice("none")


def test_a_new_part_has_its_own_defaults():
    """The paper's recipes spell FixMatch's settings out; a MixMatch must not inherit its weight."""
    paper = recipe("cifar10-40")
    assert paper.algorithm.settings["unlabeled_weight"] == 1.0
    assert changed(paper, "algorithm=pseudolabel").algorithm == Choice("pseudolabel")
    assert changed(paper, "unlabeled_weight=2", "algorithm=pseudolabel").algorithm.settings == {"unlabeled_weight": 2.0}
    assert changed(paper, "algorithm=fixmatch") == paper


def test_parts_are_changed_before_settings():
    assert TINY.changed(views=2, algorithm="fixmatch") == TINY.changed(algorithm="fixmatch", views=2)
    with pytest.raises(ValueError, match="strength"):
        TINY.changed(strength=1.0, correction="none")


def test_the_difference_of_two_recipes_makes_one_of_the_other():
    base = recipe("cifar10-40")
    for cell in (
        ("cifar10-40", "start", "supervised"),
        ("cifar10-lt100-10pct", "start", "contrastmatch+margins"),
        ("digits-10", None, None),
    ):
        other = recipe(*cell)
        made = base.changed(**base.diff(other))
        assert made.diff(other) == {} == other.diff(made)
    assert base.diff(base.changed(strength=1.0, seed=2)) == {"correction.strength": 1.0, "seed": 2}
    assert base.diff(base.changed(margin_strength=None, name="other")) == {}, "the default, and a description"
    assert base.diff(base.changed(algorithm="supervised")) == {"algorithm": "supervised"}
    assert base.diff(base.changed(algorithm="pseudolabel", threshold=0.7))["algorithm.threshold"] == 0.7


def test_a_setting_has_an_owner():
    keys = {
        "steps": "recipe",
        "correction": "recipe",
        "threshold": "algorithm",
        "strength": "correction",
        "correction.strength": "correction",
        "algorithm.strength": None,
        "stepps": None,
        "nothing.strength": None,
        "correction.": None,
        "": None,
    }
    assert {key: TINY.owner(key) for key in keys} == keys
    assert changed(TINY, "correction=none").owner("strength") is None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("steps", "key=value"),
        ("stepps=3", "Did you mean steps?"),
        ("steps=many", "a whole number"),
        ("flip=maybe", "true or false"),
        ("strength=strong", "a number"),
        ("algorithm=fixmach", "Did you mean fixmatch?"),
        ("algorithm=owl", f"There are {', '.join(sorted([*ALGORITHMS, *STARTS, *HINTED]))}."),
        ("correction=debiasr+crest", "Did you mean debiaser?"),
        ("network=resnet51", f"Did you mean resnet18? There are {', '.join(sorted(PARTS['network']))}."),
        ("memory=9", "'memory': it is a setting of algorithm="),
        ("network.strength=1", "network.strength"),
        ("nothing.strength=1", "nothing.strength"),
        ("steps=0", "steps is 0"),
        ("teacher=mean", "auto"),
        ("first_classifier=best", "graph"),
    ],
)
def test_wrong_settings_teach(setting, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        changed(TINY, setting)


def test_a_setting_of_another_part_is_named_with_its_owner():
    with pytest.raises(ValueError, match="correction=debiaser, but here correction=none"):
        changed(changed(TINY, "correction=none"), "strength=0.3")
    with pytest.raises(ValueError, match=r"algorithm=(\S+, ){3}\.\.\., but here algorithm=supervised"):
        changed(changed(TINY, "algorithm=supervised"), "threshold=0.3")


@pytest.mark.parametrize(
    ("part", "name", "settings"),
    [
        ("correction", "none", {"strength": 1}),
        ("algorithm", "fixmatch", {"joint": 1}),
        ("correction", "debiaser+tau-norm", {"tau": [0.5]}),
    ],
)
def test_a_part_with_another_setting_is_refused_when_made(part, name, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        dataclasses.replace(TINY, **{part: Choice(name, settings)})


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"data": 5}, "data"),
        ({"start": 5}, "start"),
        ({"unlabeled_batch": 10**12}, "unlabeled_batch"),
        ({"image_size": 10**9}, "image_size"),
        ({"seed": True}, "seed"),
        ({"seed": "3"}, "seed"),
        ({"steps": 10.5}, "steps"),
        ({"flip": 1}, "flip"),
        ({"paper": "good"}, "paper"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"image_size": 10**30}, "image_size"),
        ({"network": 5}, "network"),
        ({"network": {"name": "wrn"}}, "network"),
        ({"network": {"name": "wrn", "settings": 5}}, "settings"),
        ({"network": {"name": 5, "settings": {}}}, "text"),
        ({"network": {"name": "wrn", "settings": {"width": True}}}, "width"),
        ({"network": {"name": "resnet9", "settings": {"widths": [1, "x"]}}}, "widths"),
    ],
)
def test_values_of_another_type_or_out_of_range_are_refused(values, word):
    plain = TINY.to_json() | {"network": {"name": "wrn", "settings": {}}}
    with pytest.raises(ValueError, match=word):
        Recipe.from_json(plain | values)
    if "network" not in values:
        with pytest.raises(ValueError, match=word):
            TINY.changed(**values)


@pytest.mark.parametrize("values", [5, [], None, {}, {"steps": 4}, {"name": "x", "wings": 2}])
def test_what_is_no_recipe_is_refused(values):
    with pytest.raises(ValueError, match="recipe"):
        Recipe.from_json(values)

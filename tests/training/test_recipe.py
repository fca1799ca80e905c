"""Recipes: written and read again, changed by key=value, described, and made from a method's name."""

import json
import re
from pathlib import Path

import pytest

from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS
from debiaspl.debias import CORRECTIONS
from debiaspl.recipes import RECIPES, recipe
from debiaspl.training import Choice, Recipe
from debiaspl.training.method import method_of, with_method
from debiaspl.training.parts import PARTS, find, settings_of
from debiaspl.training.settings import as_text, help_texts, parse_settings, settings
from tests.training.tiny import TINY, changed


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
        ("correction.strenght=1", "Did you mean strength?"),
        ("correction.threshold=0.9", "Did you mean threshold?"),
        ("steps=many", "a whole number"),
        ("flip=maybe", "true or false"),
        ("strength=strong", "a number"),
        ("algorithm=fixmach", "Did you mean fixmatch?"),
        ("algorithm=owl", f"There are {', '.join(sorted([*ALGORITHMS, *STARTS, *HINTED]))}."),
        ("correction=debiasr+crest", "Did you mean debiaser?"),
        ("network=resnet51", f"Did you mean resnet18? There are {', '.join(sorted(PARTS['network']))}."),
        ("memory=9", "'memory': it is a setting of algorithm="),
        *((f"{part}.strength=1", f"'{part}.strength'. Did you mean strength?") for part in ("network", "nothing")),
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
    ("values", "word"),
    [
        ({"data": 5}, "data"),
        ({"start": 5}, "start"),
        ({"unlabeled_batch": 10**12}, "unlabeled_batch"),
        ({"image_size": 10**9}, "image_size"),
        *(({"seed": seed}, "seed") for seed in (True, "3", 2**32 - 1)),
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
        ({"correction": {"name": "none", "settings": {"strength": 1}}}, "strength"),
        ({"correction": {"name": "debiaser+tau-norm", "settings": {"tau": [0.5]}}}, "tau"),
    ],
)
def test_values_of_another_type_or_out_of_range_are_refused(values, word):
    plain = TINY.to_json() | {"network": {"name": "wrn", "settings": {}}}
    with pytest.raises(ValueError, match=word):
        Recipe.from_json(plain | values)
    if not {"network", "correction"} & values.keys():
        with pytest.raises(ValueError, match=word):
            TINY.changed(**values)


@pytest.mark.parametrize("values", [5, [], None, {}, {"steps": 4}, {"name": "x", "wings": 2}])
def test_what_is_no_recipe_is_refused(values):
    with pytest.raises(ValueError, match="recipe"):
        Recipe.from_json(values)


EVERY_PART = [(kind, name) for kind, parts in PARTS.items() for name in parts]


@pytest.mark.parametrize(("kind", "name"), EVERY_PART)
def test_every_setting_of_a_part_has_help(kind, name):
    texts = help_texts(find(kind, name))
    without = [key for key in settings_of(kind, name) if not texts.get(key, "").endswith(".")]
    assert not without, f"describe {', '.join(without)} under Args: in the docstring, or below the field"


def test_every_field_of_a_recipe_has_help():
    assert [setting.name for setting in settings(Recipe("mine")) if not setting.help] == []


def test_help_is_the_first_sentence_on_one_line():
    assert help_texts(Recipe)["steps"] == "Training steps (K)."
    plus, crest = (help_texts(find("algorithm", name)) for name in ("crest+", "crest"))
    assert plus["generations"] == crest["generations"]


@pytest.mark.parametrize(("name", "length"), [("digits-10", None), ("cifar10-40", "minutes"), ("imagenet-1pct", None)])
def test_what_is_listed_can_be_typed(name, length):
    made = recipe(name, length).changed(algorithm="contrastmatch")
    for setting in settings(made):
        assert made.owner(setting.name) == setting.part
        again = parse_settings(made, [f"{setting.name}={as_text(setting.value)}"])
        same = {one.name: one.value for one in settings(again)}[setting.name]
        assert same == setting.value


def test_settings_of_an_algorithm_of_a_file(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "from debiaspl.algorithms import FixMatch\n\n\nclass Mine(FixMatch):\n"
        '    """Mine.\n\n    Args:\n        last: the threshold at the end.\n'
        '        **others: FixMatch\'s own.\n    """\n\n'
        "    def __init__(self, correction=None, last=0.5, **others):\n"
        "        super().__init__(correction, **others)\n"
    )
    recipe = parse_settings(Recipe("mine"), [f"algorithm={tmp_path}/mine.py:Mine"], load_files=True)
    listed = {one.name: one.help for one in settings(recipe)}
    assert listed["last"] == "The threshold at the end."
    assert listed["threshold"].startswith("Labels less confident than this")


BASE = Recipe("base", first_classifier="graph")
NAMES = ["debiaspl", "margins", "contrastmatch+margins", "remixmatch+none", "crest++debiaser", "fixmatch+simpro"]
NAMES += ["remixmatch+debiaser", "fixmatch+alignment+logit-adjustment", *ALGORITHMS]
OWN = "from debiaspl.{0} import {1}\n\nclass Mine({1}):\n    def losses(self, models, batch):\n        return {{}}\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_recipe_and_a_recipe_has_that_name(name):
    made = with_method(BASE, name)
    assert method_of(made) == name
    assert with_method(made, name) == made
    for before in ("margins", "debiaspl", "supervised"):
        assert method_of(with_method(with_method(BASE, before), name)) == name


def test_what_the_names_mean():
    assert method_of(Recipe("default")) == "debiaspl"
    fixmatch = with_method(BASE, "fixmatch")
    assert (fixmatch.algorithm.name, fixmatch.correction.name) == ("fixmatch", "none")
    assert with_method(fixmatch, "fixmatch+debiaser") == with_method(fixmatch, "debiaspl")
    softmatch = with_method(BASE, "softmatch")
    assert softmatch.correction == Choice("alignment", {"target": "uniform"})
    assert softmatch.algorithm.settings["corrected_labels"] is False
    assert method_of(softmatch.changed(target="labels")) == "softmatch+alignment"
    assert method_of(Recipe("weak", correction=Choice("debiaser", {"strength": 0.0}))) == "fixmatch"


def test_a_mistyped_method_is_hinted_at_although_no_algorithm_has_its_name():
    with pytest.raises(ValueError, match="debiaspl"):
        with_method(BASE, "debiapsl")
    with pytest.raises(ValueError, match="fixmatch"):
        with_method(BASE, "fixmtach")
    with pytest.raises(ValueError, match="load_files"):
        with_method(BASE, "debiaspl.py:Mine")


def test_settings_are_kept_but_margins_are_not_debiasing():
    strong = Recipe("strong", correction=Choice("debiaser", {"strength": 1.0}))
    assert with_method(strong, "flexmatch+debiaser").correction == strong.correction
    assert with_method(with_method(strong, "margins"), "debiaspl").correction == Choice("debiaser")


def test_an_algorithm_that_learns_from_labels_alone_has_no_graph_of_all_images():
    assert with_method(BASE, "supervised").first_classifier == "random"
    assert with_method(BASE, "debiaspl").first_classifier == "graph"
    assert not {"debiaspl", "margins"} & {*ALGORITHMS, *CORRECTIONS}, "no part has the name of a method"


def test_every_recipe_has_a_method_that_is_its_own():
    for made in RECIPES.values():
        assert with_method(made, method_of(made)) == made, made.name


def test_classes_in_files(tmp_path):
    file = tmp_path / "c++" / "mine.py"
    file.parent.mkdir()
    file.write_text(OWN.format("algorithms", "Algorithm"))
    with pytest.raises(ValueError, match="load_files"):
        with_method(BASE, f"{file}:Mine")
    for ending, correction in (("", "none"), ("+debiaser", "debiaser")):
        made = with_method(BASE, f"{file}:Mine{ending}", load_files=True)
        assert (made.algorithm.name, made.correction.name) == (f"{file}:Mine", correction)
        assert method_of(made) == f"{file}:Mine{ending}"
    file = tmp_path / "own.py"
    file.write_text(OWN.format("debias", "Correction"))
    assert with_method(BASE, f"fixmatch+{file}:Mine", load_files=True).correction.name == f"{file}:Mine"


@pytest.mark.parametrize("name", ["", "fixmach", "fixmatch+", "fixmatch+debiase", "debiaspl+debiaser"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match="there is no"):
        with_method(BASE, name)

"""A method has a name, and a name is a method."""

import pytest

from debiaspl.algorithms import ALGORITHMS
from debiaspl.debias import CORRECTIONS
from debiaspl.recipes import RECIPES
from debiaspl.training import Choice, Recipe
from debiaspl.training.method import method_of, with_method

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


def test_settings_are_kept_but_margins_are_not_debiasing():
    strong = Recipe("strong", correction=Choice("debiaser", {"strength": 1.0}))
    assert with_method(strong, "flexmatch+debiaser").correction == strong.correction
    assert with_method(with_method(strong, "margins"), "debiaspl").correction == Choice("debiaser")


def test_an_algorithm_that_learns_from_labels_alone_has_no_graph_of_all_images():
    assert with_method(BASE, "supervised").first_classifier == "random"
    assert with_method(BASE, "debiaspl").first_classifier == "graph"
    assert not {"debiaspl", "margins"} & {*ALGORITHMS, *CORRECTIONS}, "no part has the name of a method"


def test_every_recipe_has_a_method_that_is_its_own():
    for recipe in RECIPES.values():
        assert with_method(recipe, method_of(recipe)) == recipe, recipe.name


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

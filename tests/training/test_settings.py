"""Every setting has a line of help, and is named as ``--set`` takes it."""

from pathlib import Path

import pytest

from debiaspl.recipes import recipe as recipe_of
from debiaspl.training import Recipe
from debiaspl.training.parts import PARTS, find, settings_of
from debiaspl.training.settings import as_text, help_texts, parse_settings, settings

EVERY_PART = [(kind, name) for kind, parts in PARTS.items() for name in parts]


@pytest.mark.parametrize(("kind", "name"), EVERY_PART)
def test_every_setting_of_a_part_has_help(kind, name):
    texts = help_texts(find(kind, name))
    without = [key for key in settings_of(kind, name) if not texts.get(key, "").endswith(".")]
    assert not without, f"describe {', '.join(without)} under Args: in the docstring, or below the field"


def test_every_field_of_a_recipe_has_help():
    assert [setting.name for setting in settings(Recipe("mine")) if not setting.help] == []


def test_help_is_the_first_sentence_on_one_line():
    texts = help_texts(Recipe)
    assert texts["steps"] == "Training steps (K)."
    assert texts["start"].endswith("of EMAN or of any ResNet of its depth.")
    assert texts["teacher"].startswith("What labels the weak views: the student in training mode, the average in eval")
    fixmatch = help_texts(find("algorithm", "fixmatch"))
    assert fixmatch["views"] == "1 weak and 1 strong view, or the paper's multi-view: 2 of each."
    assert (
        help_texts(find("algorithm", "crest+"))["generations"] == help_texts(find("algorithm", "crest"))["generations"]
    )


@pytest.mark.parametrize(("name", "length"), [("digits-10", None), ("cifar10-40", "minutes"), ("imagenet-1pct", None)])
def test_what_is_listed_can_be_typed(name, length):
    recipe = recipe_of(name, length).changed(algorithm="contrastmatch")
    for setting in settings(recipe):
        assert recipe.owner(setting.name) == setting.part
        again = parse_settings(recipe, [f"{setting.name}={as_text(setting.value)}"])
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

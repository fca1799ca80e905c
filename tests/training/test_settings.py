"""Every setting has a line of help, and is named as ``--set`` takes it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
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


def said(*arguments: str):
    return CliRunner().invoke(app, ["list", "settings", *arguments], env={"COLUMNS": "120", "NO_COLOR": "1"})


def as_json(*arguments: str) -> dict[str, dict]:
    return {one["name"]: one for one in json.loads(said(*arguments, "--json").stdout)}


def test_the_command_lists_a_recipe():
    listed = as_json("digits-10")
    assert listed["steps"] == {
        "part": "recipe",
        "name": "steps",
        "value": 600,
        "default": 2**19,
        "help": "Training steps (K).",
    }
    assert listed["strength"]["part"] == "correction"
    lines = said("digits-10").stdout.splitlines()
    (steps,) = (line.split() for line in lines if line.startswith("steps "))
    assert steps[:4] == ["steps", "600", "Training", "steps"]
    assert {"network small", "algorithm fixmatch", "correction debiaser"} <= {line.rstrip() for line in lines}


def test_the_command_lists_the_defaults_and_other_parts():
    listed = as_json()
    assert listed["steps"]["value"] == listed["steps"]["default"]
    parts = "algorithm=swav", "correction=ldam", "network=resnet9", "protocol=two-tails", "strong=cropcolor"
    other = as_json(*(word for part in parts for word in ("--set", part)))
    assert {"prototypes", "max_margin", "widths", "labeled_max", "grey_share"} <= set(other)
    assert not {"strength", "depth", "per_class", "draws"} & set(other)


def test_the_command_lists_an_algorithm_of_a_file(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "from debiaspl.algorithms import FixMatch\n\n\nclass Mine(FixMatch):\n"
        '    """Mine.\n\n    Args:\n        last: the threshold at the end.\n'
        '        **others: FixMatch\'s own.\n    """\n\n'
        "    def __init__(self, correction=None, last=0.5, **others):\n"
        "        super().__init__(correction, **others)\n"
    )
    listed = as_json("--set", f"algorithm={tmp_path}/mine.py:Mine")
    assert listed["last"]["help"] == "The threshold at the end."
    assert listed["threshold"]["help"].startswith("Labels less confident than this")

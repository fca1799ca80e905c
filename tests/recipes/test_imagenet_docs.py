"""docs/imagenet.md: its commands name what exists, its table is that of the recipes, and its rehearsal runs."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.recipes import RECIPES, recipe
from tests.data.photos import write_shards

PAGE = (Path(__file__).parents[2] / "docs" / "imagenet.md").read_text()
COMMANDS = [line for block in re.findall(r"^```bash\n(.*?)^```", PAGE, re.M | re.S) for line in block.splitlines()]
TRAINING = [shlex.split(line)[2:] for line in COMMANDS if line.startswith("debiaspl train")]


def test_the_table_is_that_of_the_recipes():
    shown = dict(re.findall(r"^\| `(imagenet\S+)` \|.*\| ([\d.]+) \|$", PAGE, re.M))
    assert shown == {name: str(found.paper) for name, found in RECIPES.items() if name.startswith("imagenet")}


@pytest.mark.parametrize("arguments", TRAINING, ids=" ".join)
def test_commands_name_recipes_settings_and_options_that_there_are(arguments):
    options = CliRunner().invoke(app, ["train", "--help"], terminal_width=200).output
    settings = [arguments[place + 1] for place, word in enumerate(arguments) if word == "--set"]
    recipe(arguments[arguments.index("--recipe") + 1]).with_settings(settings)
    for word in arguments:
        assert not word.startswith("--") or word in options, word


@pytest.mark.slow
def test_the_rehearsal_runs_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_shards(tmp_path / "shards", per_class=8)
    rehearsal = next(arguments for arguments in TRAINING if "start=" in arguments)
    ran = CliRunner().invoke(app, ["train", *rehearsal, "--device", "cpu", "--workers", "0"])
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / "runs" / "rehearsal" / "results.json").exists()


def test_settings_of_the_page_are_those_of_the_recipes():
    one, more = recipe("imagenet-1pct-multiview"), recipe("imagenet-1pct-scripts")
    few = recipe("imagenet-0.2pct-scripts")
    strengths = [each.correction.settings["strength"] for each in (one, more)]
    assert f"| strength | {strengths[0]} | {strengths[1]} |" in PAGE
    assert f"| learning rate | {one.learning_rate} | {more.learning_rate} |" in PAGE
    thresholds = [each.algorithm.settings["threshold"] for each in (one, more)]
    assert f"| threshold | {thresholds[0]} | {thresholds[1]} |" in PAGE
    weights = [each.algorithm.settings["cld_weight"] for each in (more, few)]
    assert f"| CLD | with multi-view, the same | {weights[0]} (1 %), {weights[1]} (0.2 %) |" in PAGE

"""docs/add-an-algorithm.md, executed from its own text: its files are written, and its commands run with few steps."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "add-an-algorithm.md").read_text()
FILES = dict(re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = [
    line for block in re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) for line in block.splitlines()
]
FEW_STEPS = "--set steps=3 --set width=4 --set labeled_batch=8 --set unlabeled_batch=16"


def lines_of_code(name: str) -> int:
    return sum(bool(line.strip()) for line in FILES[name].splitlines())


def test_the_page_shows_an_algorithm_in_under_20_lines_and_a_correction_in_fewer():
    assert set(FILES) == {"mine.py", "centred.py", "test_mine.py"}
    assert PAGE.count("```python") == len(FILES)
    assert lines_of_code("mine.py") < 20
    assert lines_of_code("centred.py") < 15


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("user")
    for name, text in FILES.items():
        (made / name).write_text(text)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run_as_printed_but_for_the_number_of_steps(folder, command):
    typed = command
    environment = {**os.environ, "COLUMNS": "120"}
    if command.startswith("debiaspl"):
        assert set(re.findall(r"(\w+\.py):", command)) <= set(FILES)
        typed += f" {FEW_STEPS}"
        if command.startswith("debiaspl compare"):
            typed += " --seeds 1"
        ran = forked.command(*shlex.split(typed)[1:], folder=folder, environment=environment)
    else:
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        typed += " -p no:cacheprovider -W error"
        ran = subprocess.run(typed, shell=True, cwd=folder, env=environment, text=True, capture_output=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    out = re.search(r"--out (\S+)", command)
    if out is not None:
        results = json.loads((folder / out[1] / "results.json").read_text())
        assert "FallingThreshold" in json.dumps(results)
    if "Centred" in command:
        assert "centred.py:Centred" in ran.stdout
        assert list((folder / out[1]).glob("mine.py-FallingThreshold-centred.py-Centred-seed0/results.json"))


def test_the_page_has_a_command_for_each_of_its_files():
    for name in FILES:
        assert any(name in command for command in COMMANDS)


def test_linked_files_exist():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target

"""The public face: names, start-up, and the commands as a user types them."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import debiaspl
from debiaspl.cli import app

COMMAND = [sys.executable, "-m", "debiaspl"]


def run(*arguments: str, folder: Path | None = None, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1", **settings}
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=folder, env=environment)


def typed(*arguments: str, **settings: str) -> Any:
    """The same without a process of its own, which takes seconds to import torch."""
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "120", "NO_COLOR": "1", **settings})


def test_every_public_name_is_there():
    for name in debiaspl.__all__:
        assert getattr(debiaspl, name) is not None
    assert set(debiaspl.__all__) <= set(dir(debiaspl))
    with pytest.raises(AttributeError, match=r"has no attribute 'Debiazer'\. It has Algorithm, Choice, Corr"):
        debiaspl.Debiazer  # noqa: B018


@pytest.mark.slow
def test_help_answers_at_once():
    """By the processor's time: the clock's is also that of everything else on the machine."""
    seconds = []
    for _ in range(3):
        before = os.times()
        answered = run("--help")
        after = os.times()
        seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert answered.returncode == 0
    assert "demo" in answered.stdout
    assert min(seconds) < 0.5


@pytest.mark.slow
def test_help_imports_no_torch():
    program = "import sys; sys.argv = ['debiaspl', '--help']\nfrom debiaspl.__main__ import main\n"
    program += "try: main()\nexcept SystemExit: print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip().endswith("False")


@pytest.mark.slow
def test_a_reader_that_has_heard_enough_is_no_error(tmp_path):
    """``debiaspl demo | head -1``: what it says at its end reaches nobody."""
    program = "from debiaspl.cli.terminal import plain_errors\nimport typer\n\n\ndef say():\n    with plain_errors():\n"
    program += "        for _ in range(9999): typer.echo('line')\n\n\ntyper.run(say)\n"
    (tmp_path / "say.py").write_text(program)
    piped = f"{shlex.quote(sys.executable)} {tmp_path / 'say.py'} | head -1"
    said = subprocess.run(["bash", "-c", piped], capture_output=True, text=True)
    assert (said.stdout, said.stderr) == ("line\n", "")


@pytest.mark.slow
def test_version():
    assert run("--version").stdout.strip() == debiaspl.__version__


@pytest.mark.slow
def test_without_typer_the_command_says_what_to_install():
    program = "import sys; sys.modules['typer'] = None\nfrom debiaspl.__main__ import main\nmain()"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.returncode == 1
    assert "pip install 'debiaspl[cli]'" in said.stderr


@pytest.mark.slow
def test_train_by_recipe_with_settings_and_resume(tmp_path, monkeypatch):
    arguments = ["train", "--recipe", "digits-10", "--set", "steps=3", "--set", "width=4", "--out", "my run"]
    first = run(*arguments, folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "% on 500 test images" in first.stdout
    assert first.stderr == ""  # no progress line where there is no terminal
    monkeypatch.chdir(tmp_path)
    again = typed(*arguments)
    assert again.exit_code == 1
    assert "already contains a run" in again.stderr
    told = typed(*arguments, "--resume").stdout.splitlines()
    assert told.pop(0).endswith(" has ended already; nothing was trained.")
    assert told == first.stdout.splitlines()


MISTAKES = {
    "no recipe named 'digit-10'. Did you mean digits-10?": ["--recipe", "digit-10"],
    "no setting 'speed'": ["--recipe", "digits-10", "--set", "speed=9"],
    "threshold is 7.0, expected": ["--recipe", "digits-10", "--set", "threshold=7"],
    "the device is 'gpu', expected": ["--recipe", "digits-10", "--device", "gpu"],
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_get_a_message_and_leave_no_folder(tmp_path, monkeypatch, message):
    monkeypatch.chdir(tmp_path)
    said = typed("train", *MISTAKES[message])
    assert said.exit_code == 1
    assert said.stderr.startswith("error: ")
    assert message in said.stderr
    assert list(tmp_path.iterdir()) == []

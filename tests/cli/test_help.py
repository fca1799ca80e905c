"""Every help text fits 80 columns and shows each default; the same option means the same everywhere."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from debiaspl.cli import app
from tests.messages import PACKAGE


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))
OPTIONS = [
    (path, option, name)
    for path, command in COMMANDS.items()
    for option in command.params
    for name in option.opts
    if name.startswith("--")
]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_fits_80_columns(path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    shown = CliRunner().invoke(app, [*path, "--help"], terminal_width=80).output
    lines = shown.splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) <= 80
    assert "…" not in shown, "something was cut"
    assert "<bool>" not in shown, "a flag takes no value"


def test_every_default_is_shown():
    """By its value or, where that is None, in words; a flag is off unless it is given."""
    hidden = [
        (" ".join(path), option.name)
        for path, command in COMMANDS.items()
        for option in command.params
        if not option.required
        and not getattr(option, "is_flag", False)
        and not isinstance(option.show_default, str)
        and (option.default in (None, ()) or not option.show_default)
    ]
    assert hidden == []


def test_an_option_means_the_same_in_every_command():
    texts: dict[str, set[str]] = {}
    for _, option, name in OPTIONS:
        texts.setdefault(name, set()).add(option.help)
    for name in ("--workers", "--jobs", "--set", "--resume", "--device", "--json", "--port", "--follow-links"):
        assert len(texts[name]) == 1, name
    assert all("Read" in text for text in texts["--labels"])
    assert all(text.startswith("Replace ") for text in texts["--overwrite"])


FOREIGN = {"--nproc-per-node", "--max-restarts", "--local-addr"}
"""Options of torchrun that a text names."""
NAMED = re.compile(r"""(?<![\w-])(?<!var\()(?<!setProperty\(")--[a-z][a-z-]*[a-z]""")
"""An option in a text; not a variable of CSS."""


def test_every_option_that_a_text_names_exists():
    """In messages and help texts, in pages, and in the examples of docstrings."""
    known = {"--help"} | FOREIGN
    known |= {
        name for command in COMMANDS.values() for one in command.params for name in (*one.opts, *one.secondary_opts)
    }
    files = [path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".js", ".html")]
    named = [(path.name, name) for path in files for name in NAMED.findall(path.read_text(encoding="utf-8"))]
    assert len({name for _, name in named}) > 50
    assert [(file, name) for file, name in named if name not in known] == []
    # Both exist: processes that read images are not runs that train at the same time.
    assert {name for file, name in named if file == "parallel.py"} <= {"--jobs", "--resume"}


def test_whatever_is_written_can_be_overwritten():
    """A command with --out, --page or another output has --overwrite; label continues its table instead."""
    outputs = {"--out", "--page", "--onnx"}
    for path, command in COMMANDS.items():
        names = {name for option in command.params for name in option.opts}
        if names & outputs and path != ("label",):
            assert "--overwrite" in names, path


ONE_WORD = {
    r"director(y|ies)": "folder",
    r"data ?sets?|known sets?|(?<!image )sets?(?= from)": "image set",
    r"pictures?": "photo, image or thumbnail",
    r"sub-?folders?": "at any depth",
    r"experiments?(?! of the paper)": "run",
    r"a trained run": "a run that has ended",
    r"continu(e|es|ed)": "resume",
}
"""Word -> the one that all help texts use for the same thing."""


def texts(path: tuple[str, ...]) -> list[str]:
    """What the help of a command says: of itself, its options and their defaults."""
    command = COMMANDS[path]
    shown = [(option.help, option.show_default) for option in command.params]
    return [command.help or "", *(text for pair in shown for text in pair if isinstance(text, str))]


def test_one_thing_has_one_name():
    said = [(" ".join(path), text) for path in COMMANDS for text in texts(path)]
    for word, instead in ONE_WORD.items():
        found = [one for one in said if re.search(rf"\b({word})\b", one[1], re.IGNORECASE)]
        assert found == [], f"write {instead}"


def test_files_of_the_user_are_photos_and_images_are_those_of_known_sets():
    """PHOTOS are photos throughout the help of a command, whatever else it can read."""
    with_photos = [path for path, command in COMMANDS.items() if any(one.metavar == "PHOTOS" for one in command.params)]
    assert len(with_photos) > 6
    said = [(" ".join(path), text) for path in with_photos for text in texts(path)]
    assert [one for one in said if re.search(r"\bimages?\b(?! sets?\b)", one[1])] == []


def test_what_is_typed_for_an_argument_is_in_capitals():
    arguments = [one for command in COMMANDS.values() for one in command.params if one.param_type_name == "argument"]
    assert len(arguments) > 15
    assert {one.name for one in arguments if not (one.metavar or "").isupper() and one.metavar != "RUN..."} == set()

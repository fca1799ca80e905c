"""Help fits 80 columns, shows each default and an example; one option is the same everywhere; hints for slips."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import debiaspl
from debiaspl.cli import GROUPS, app


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


EVERY = dict(commands(typer.main.get_command(app)))
COMMANDS = {path: command for path, command in EVERY.items() if not command.hidden}


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


def test_the_list_of_commands_has_groups_and_an_example_each():
    shown = CliRunner().invoke(app, ["--help"]).output
    assert [line for line in shown.splitlines() if line in GROUPS] == list(GROUPS)
    options = {name for one in EVERY[()].params for name in one.opts}
    assert [name for name in options if name not in shown] == [], "an option of no command has no other help"
    for name in COMMANDS[()].commands:
        if (name,) in COMMANDS:
            assert re.search(rf"^  {name} .*\n(?:            .*\n)*            debiaspl {name}", shown, re.M), name


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
    for command in COMMANDS.values():
        for option in command.params:
            texts.setdefault(option.opts[0], set()).add(option.help)
    for name in ("--jobs", "--set", "--resume", "--device", "--json", "--port"):
        assert len(texts[name]) == 1, name
    assert all(text.startswith("Replace ") for text in texts["--overwrite"])


def test_features_take_the_place_of_photos_where_the_help_says_so():
    for path, command in COMMANDS.items():
        for photos in (one for one in command.params if one.name == "photos" and path[0] != "label"):
            if "--features" in {name for one in command.params for name in one.opts}:
                assert not photos.required, path
                assert "--features" in photos.show_default or path == ("next",), "of next, what it needs is the first"
    (help,) = {one.help for command in COMMANDS.values() for one in command.params if one.opts == ["--features"]}
    assert "PHOTOS" not in help, "debiaspl label needs the photos"


FOREIGN = {"--nproc-per-node", "--max-restarts", "--local-addr"}
"""Options of torchrun that a text names."""
NAMED = re.compile(r"""(?<![\w-])(?<!var\()(?<!setProperty\(")--[a-z][a-z-]*[a-z]""")
"""An option in a text; not a variable of CSS."""


def test_every_option_that_a_text_names_exists():
    """In messages and help texts, in pages, and in the examples of docstrings."""
    known = {"--help"} | FOREIGN
    known |= {name for command in EVERY.values() for one in command.params for name in (*one.opts, *one.secondary_opts)}
    files = [
        path
        for path in Path(debiaspl.__file__).parent.rglob("*")
        if path.suffix in (".py", ".js", ".html") and path.name != "usage.py"
    ]
    named = [(path.name, name) for path in files for name in NAMED.findall(path.read_text(encoding="utf-8"))]
    assert len({name for _, name in named}) > 40
    assert [(file, name) for file, name in named if name not in known] == []


def test_whatever_is_written_can_be_overwritten():
    """A command with --out, --page or another output has --overwrite; label and encode add to what is there."""
    for path, command in COMMANDS.items():
        names = {name for option in command.params for name in option.opts}
        if names & {"--out", "--page"} and path not in (("label",), ("encode",)):
            assert "--overwrite" in names, path


@pytest.mark.parametrize(
    ("typed", "hint"),
    {
        "train photos --seed 1": "--set seed=1",
        "train photos --set lr=3": "learning_rate",
        "train photos --set class_weight=balanced": "ldam-drw",
        "train photos/a.jpg photos/b.jpg": "debiaspl train photos",
        "predict run photos/a.jpg photos/b.jpg": "debiaspl predict run photos.",
        "label photos --classes rose, petunia": "--classes 'rose,petunia'",
        "label photos --classes red rose,petunia": "--classes 'rose,petunia'",
        "zeroshot photos --labels photos/a.jpg": "--classes",
        "train photos more --labels photos/a.jpg": "(more)",
        "train photos --follow-links": "before the command",
        "list recipe": "recipes",
        "next run photos --count 0": "equal to 1. See",
        "trian photos": "train",
    }.items(),
)
def test_what_people_type_gets_a_hint_in_a_line(typed, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("photos", "run"):
        (tmp_path / folder).mkdir()
    for name in "ab":
        (tmp_path / "photos" / f"{name}.jpg").touch()
    ran = CliRunner().invoke(app, typed.split())
    assert ran.exit_code == 2
    assert ran.stderr.startswith("error: ")
    assert hint in ran.stderr
    assert ran.stderr.count("\n") == 1

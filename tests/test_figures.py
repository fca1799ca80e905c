"""Figures of README and docs: each has a command and a caption that says what to see."""

import re
from pathlib import Path

from tools.figures import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def figures() -> dict[str, list[str]]:
    """File -> what follows it on each page that shows it."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for target, after in re.findall(r"!\[[^]]+\]\((.+?)\)\n\n(.+(?:\n.+)*)", page.read_text()):
            file = (page.parent / target).resolve().relative_to(ROOT).as_posix()
            found.setdefault(file, []).append(after)
    return found


def test_every_figure_has_a_command_and_a_caption():
    shown = figures()
    assert set(shown) == set(COMMANDS)
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.[ps][nv]g")} == set(COMMANDS)
    for file, captions in shown.items():
        assert all(re.match(r"\*[^*]+\.\*", caption) for caption in captions), file


def test_the_commands_name_what_exists():
    for file, command in COMMANDS.items():
        assert file in command or file == "docs/results.svg"
        for word in command.split():
            if word.startswith(("results/", "benchmarks/")):
                assert (ROOT / word).exists(), word


def test_the_picture_of_the_demo_is_the_recorded_one():
    assert (ROOT / "docs" / "demo.png").read_bytes() == (ROOT / "results" / "demo" / "comparison.png").read_bytes()

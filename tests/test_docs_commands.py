"""Every `debiaspl ...` that README, docs, CONTRIBUTING and SECURITY print: the command and its options exist."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from debiaspl.cli import app
from tools.reference import commands

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
KNOWN: dict[str, Any] = dict(commands(typer.main.get_command(app)))


def printed(page: str) -> list[str]:
    """Commands in code, in a block or within a line; what comes before the word debiaspl is another program's."""
    page = page.replace("\\\n", " ")
    blocks = re.findall(r"^```(?:bash|shell)?\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()] + re.findall(r"^    (.*)$", page, re.MULTILINE)
    inline = [" ".join(text.split()) for text in re.findall(r"(?<!`)`([^`]+)`(?!`)", page)]
    found = [re.search(r"(?:^|-m |exec )(debiaspl [a-z].*)", text) for text in [*lines, *inline]]
    return [match[1] for match in found if match]


@pytest.mark.parametrize("page", [path.relative_to(ROOT).as_posix() for path in PAGES if path.name != "CHANGELOG.md"])
def test_commands_and_their_options_exist(page):
    for text in printed((ROOT / page).read_text()):
        first, *rest = text.split()[1:]
        name = f"debiaspl {first} {rest[0]}" if first == "data" and rest else f"debiaspl {first}"
        if name == "debiaspl data":
            continue
        assert name in KNOWN, text
        options = {
            option for parameter in KNOWN[name].params for option in [*parameter.opts, *parameter.secondary_opts]
        }
        asked = {word.partition("=")[0] for word in re.findall(r"(?<=\s)--[a-z][\w-]*", text)}
        assert asked <= options | {"--help"}, f"{text}: {sorted(asked - options)}"


def test_they_are_found():
    page = "```\ndebiaspl train x \\\n  --out y\n```\n`torchrun -m debiaspl train`, ```no```\n\n    debiaspl next a b\n"
    assert printed(page) == ["debiaspl train x    --out y", "debiaspl next a b", "debiaspl train"]

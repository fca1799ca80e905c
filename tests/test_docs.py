"""README, docs and the examples' table: links lead somewhere, commands exist, generated parts are those of the code."""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from torch.distributed.run import get_args_parser

from debiaspl.cli import app
from debiaspl.recipes import recipe
from debiaspl.training import train
from tools import readme
from tools.figures import COMMANDS as FIGURES
from tools.reference import commands
from tools.site import inside

ROOT = Path(__file__).parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])
}
KNOWN: dict[str, Any] = dict(commands(typer.main.get_command(app)))


def blocks(page: str, *languages: str) -> list[str]:
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def printed(page: str) -> list[str]:
    """Commands in code, in a block or within a line; what comes before the word debiaspl is another program's."""
    page = page.replace("\\\n", " ")
    lines = [line for block in blocks(page, "bash", "shell", "") for line in block.splitlines()]
    lines += re.findall(r"^    (.*)$", page, re.MULTILINE)
    inline = [" ".join(text.split()) for text in re.findall(r"(?<!`)`([^`]+)`(?!`)", page)]
    matches = [re.search(r"(?:^|-m |exec )(debiaspl [a-z].*)", text) for text in [*lines, *inline]]
    return [match[1] for match in matches if match]


@pytest.mark.parametrize("page", [name for name in PAGES if name != "CHANGELOG.md"])
def test_commands_and_their_options_exist(page):
    for text in printed(PAGES[page]):
        first, *rest = text.split()[1:]
        name = f"debiaspl {first} {rest[0]}" if first == "data" and rest else f"debiaspl {first}"
        if name == "debiaspl data":
            continue
        assert name in KNOWN, text
        options = {name for parameter in KNOWN[name].params for name in [*parameter.opts, *parameter.secondary_opts]}
        typed = {word.partition("=")[0] for word in re.findall(r"(?<=\s)--[a-z][\w-]*", text)}
        assert typed <= options | {"--help"}, f"{text}: {sorted(typed - options)}"


def test_commands_of_torchrun_exist():
    text = "\n".join(block for page in PAGES.values() for block in blocks(page, "bash", "yaml"))
    lines = re.findall(r"^.*torchrun .*-m debiaspl train.*$", text.replace("\\\n", " "), re.MULTILINE)
    assert len(lines) > 4
    for line in lines:
        words = shlex.split(line[line.index("torchrun") :].rstrip("'"))
        parsed = get_args_parser().parse_args([*words[1 : words.index("-m")], "-m", "debiaspl"])
        assert parsed.training_script == "debiaspl"
        KNOWN["debiaspl train"].make_context("train", words[words.index("train") + 1 :])


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_linked_files_and_headings_exist(page):
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", PAGES[page]):
        place = (ROOT / page).parent / target if target else ROOT / page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), f"{target}#{anchor}"


def test_results_that_the_code_rests_on_are_there():
    code = "\n".join(path.read_text() for path in sorted((ROOT / "debiaspl").rglob("*.py")))
    named = set(re.findall(r"results/[a-z0-9-]+(?:/[a-z0-9_-]+(?:\.json)?)?", code))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_tables_are_what_was_measured():
    """Those that tools/readme.py fills in, and recorded ones, named by their folder in results/."""
    for name, text in readme.texts().items():
        assert PAGES[name] == text, "run python -m tools.readme"
    marks = [(page, name) for page, text in PAGES.items() for name in re.findall(r"<!-- table ([\w-]+) -->", text)]
    recorded = [(page, table) for page, name in marks if (table := ROOT / "results" / name / "table.md").is_file()]
    assert recorded
    assert [(page, table) for page, table in recorded if table.read_text() not in PAGES[page]] == []


def test_every_figure_has_a_command_and_a_caption():
    shown: dict[str, list[str]] = {}
    for page, text in PAGES.items():
        for target, after in re.findall(r"!\[[^]]+\]\((.+?)\)\n\n(.+(?:\n.+)*)", text):
            file = ((ROOT / page).parent / target).resolve().relative_to(ROOT).as_posix()
            shown.setdefault(file, []).append(after)
    assert set(shown) == set(FIGURES)
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.[ps][nv]g")} == set(FIGURES)
    for file, captions in shown.items():
        assert all(re.match(r"\*[^*]+\.\*", caption) for caption in captions), file
        named = [word for word in FIGURES[file].split() if word.startswith(("results/", "benchmarks/"))]
        assert [word for word in named if not (ROOT / word).exists()] == []


def test_what_is_to_be_installed():
    """The extras of the index, and the Python that pip asks for: what Debian 12 has, 3.11.2, is too old."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = re.findall(r"^\| `(\w+)` \|", PAGES["docs/index.md"], re.MULTILINE)
    assert set(rows) == set(project["optional-dependencies"]) - {"all", "dev", "demo"}
    least, make = project["requires-python"].removeprefix(">="), (ROOT / "Makefile").read_text()
    assert f"sys.version_info < ({least.replace('.', ', ')})" in make
    pages = "".join(PAGES[name] for name in ("README.md", "CONTRIBUTING.md", "docs/index.md"))
    assert re.findall(r"Python (?:>= )?(3[\d.]*\d)", pages + make) == [least] * 5


def test_files_and_their_keys_are_those_of_a_run(tmp_path):
    def named(heading: str) -> set[str]:
        """What the first column of the table below a heading names."""
        section = PAGES["docs/reference/files.md"].split(f"{heading}\n")[1].split("\n## ")[0]
        rows = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
        return {name.rstrip("/") for row in rows for name in re.findall(r"`(.+?)`", row)}

    few = recipe("digits-10").changed(steps=4, width=4, threshold=0.0, log_every=2, labeled_batch=8, unlabeled_batch=16)
    train(few, out=tmp_path / "run")
    written = {path.name for path in (tmp_path / "run").iterdir() if not path.name.startswith(".")}
    assert written == named("# Files of a run") - {"report.html"}
    assert set(json.loads((tmp_path / "run" / "results.json").read_text())) == named("## results.json")
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert {key for line in lines for key in line} == named("## log.jsonl")


def test_links_that_leave_the_site():
    page, docs, link = ROOT / "docs" / "lab" / "notebook.md", ROOT / "docs", "[gain](../../results/gain)"
    assert inside(link, page, docs) == "gain (`results/gain`)"
    assert inside(link, page, docs, "https://x/") == "[gain](https://x/blob/HEAD/results/gain)"
    assert inside("[data](../data.md)", page, docs) == "[data](../data.md)"
    with pytest.raises(FileNotFoundError, match="results/none"):
        inside("[gain](../../results/none)", page, docs)

"""docs/reference: its generated pages are those of the code, and files.md names what a run writes."""

import json
import re

import pytest

from debiaspl.recipes import recipe
from debiaspl.training import train
from debiaspl.training.settings import parse_settings
from tools.reference import FOLDER, PAGES

FILES = (FOLDER / "files.md").read_text()


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_that_of_the_code(name):
    assert (FOLDER / name).read_text() == PAGES[name](), "run python -m tools.reference"


def test_every_page_is_made_or_tested_here():
    assert {path.name for path in FOLDER.iterdir()} == {*PAGES, "files.md"}


def named(heading: str) -> set[str]:
    """What the first column of the table below a heading names."""
    rows = re.findall(r"^\| (`.*?`) \|", FILES.split(f"{heading}\n")[1].split("\n## ")[0], re.MULTILINE)
    return {name.rstrip("/") for row in rows for name in re.findall(r"`(.+?)`", row)}


def test_files_and_their_keys_are_those_of_a_run(tmp_path):
    settings = ["steps=4", "width=4", "threshold=0", "log_every=2", "labeled_batch=8", "unlabeled_batch=16"]
    train(parse_settings(recipe("digits-10"), settings), out=tmp_path / "run")
    written = {path.name for path in (tmp_path / "run").iterdir() if not path.name.startswith(".")}
    assert written == named("# Files of a run") - {"report.html"}
    assert set(json.loads((tmp_path / "run" / "results.json").read_text())) == named("## results.json")
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert {key for line in lines for key in line} == named("## log.jsonl")

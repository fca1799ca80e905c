"""The page of the paper's systems: every method and setting that it names exists, and its numbers are the paper's."""

import re
from pathlib import Path

import pytest

from debiaspl.recipes import recipe
from debiaspl.recipes.cells import CELLS
from debiaspl.training.settings import parse_settings

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "systems.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
CELL = {"CIFAR-10": "cifar10-40", "ImageNet, 1": "imagenet-1pct", "Long tails": "cifar10-lt100-10pct"}


def methods() -> list[tuple[str, str]]:
    """A cell and the code that follows --method, or stands in a column of methods."""
    found = set()
    for title, cell in CELL.items():
        section = next(text for name, text in SECTIONS.items() if name.startswith(title))
        lines = [line.split("|")[2] for line in section.splitlines() if line.count("|") > 3]
        codes = [code for line in lines for code in re.findall("`([^`]+)`", line)]
        codes += re.findall(r"--method ([^`\n]+)", section)
        found |= {(cell, code) for code in codes if re.match(r"[a-z]+[+ ]|[a-z]+$", code)}
    return sorted(found - {("cifar10-40", "debiaspl train")})


@pytest.mark.parametrize(("cell", "code"), methods())
def test_what_the_page_names_can_be_built(cell, code):
    method, *words = code.split()
    settings = [word for word in words if "=" in word and not word.startswith("--")]
    if method == "distill":
        settings.append("teacher_run=runs/teacher")
    if method in ("simclr", "swav"):
        cell = "cifar10-40"  # whose images can be learned from without labels
    parse_settings(recipe(cell, method=method), settings)


def test_the_papers_numbers_of_cells_are_on_the_page():
    for cell in CELLS.values():
        assert all(f"{paper:.1f}" in PAGE for paper in cell.papers.values()), cell.name

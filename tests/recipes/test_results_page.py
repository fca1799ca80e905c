"""``debiaspl results --page``: every cell is there, columns say what was run, and docs/results.md is what it writes."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.recipes import RECIPES
from debiaspl.recipes.all_results import Line, all_lines, all_pairs, standard_folder
from debiaspl.recipes.cifar10 import CELLS
from debiaspl.recipes.long_tail import CELLS as LONG_TAIL
from debiaspl.recipes.paper_tables import ELSEWHERE, SOURCES
from debiaspl.recipes.published import PUBLISHED
from debiaspl.recipes.repeat import read_recorded
from debiaspl.recipes.results_figure import minutes_figure
from debiaspl.recipes.results_page import values
from debiaspl.recipes.results_text import REPEAT, text
from tests.recipes.test_results import measured
from tests.report.chromium import Chromium, needs_chromium

ROOT = Path(__file__).parents[2]
PLACES = ROOT / "results" / "gain", ROOT / "results" / "start"
HALF = "cifar10-40-minutes"


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    return all_lines(PLACES, standard_folder(PLACES))


def results(*arguments: object, code: int = 0) -> str:
    ran = CliRunner().invoke(app, ["results", *map(str, arguments)])
    assert ran.exit_code == code, ran.output
    return ran.output


def test_docs_hold_what_the_command_writes(lines):
    told = "run: debiaspl results --page docs/results.md --overwrite"
    assert (ROOT / "docs" / "results.md").read_text() == text(lines), told
    assert (ROOT / "docs" / "results.svg").read_text() == minutes_figure(lines), told


def test_every_cell_and_every_published_number_is_there(lines):
    found = {(line.cell, line.method): line for line in lines if line.recipe == "the paper's"}
    for name, _, _, fixmatch, debiaspl in CELLS:
        assert (found[name, "FixMatch"].paper, found[name, "DebiasPL"].paper) == (fixmatch, debiaspl)
    papers = {line.paper for line in lines if line.recipe == "the paper's"}
    assert papers >= {recipe.paper for recipe in RECIPES.values() if recipe.paper is not None}
    standard = {(line.cell, line.method): line.others for line in lines if line.group == "standard"}
    assert {cell for cell, _ in standard} == {cell.name for cell in LONG_TAIL}
    for row in PUBLISHED:
        assert f"{row.accuracy:.1f} ± {row.spread:.1f} {row.source}" in standard[row.cell, row.method]
    assert {one.source for one in ELSEWHERE} == set(SOURCES)
    assert "89.7 paper, add-on" in found["cifar10-40", "FixMatch"].others


def test_every_command_is_of_a_recipe_or_a_file_that_is_there(lines):
    for line in lines:
        typed = shlex.split(line.command)
        if line.standing == "not in debiaspl":
            assert not typed
        elif typed[1] == "repeat":
            assert (ROOT / typed[2]).exists()
            assert line.accuracy
        else:
            assert typed[:3] == ["debiaspl", "train", "--recipe"]
            RECIPES[typed[3]].with_settings(typed[5::2])
            assert line.standing == "open"


def test_only_the_papers_own_recipe_reaches_the_paper(tmp_path):
    for name, settings in (("cifar10-40", ""), ("cifar10-40-fixmatch", " --set steps=100"), (HALF, "")):
        measured(tmp_path, "cifar10-40", name, [0.99], settings)
    found = {line.recipe: line.standing for line in all_lines([tmp_path], None) if line.accuracy}
    assert found == {
        "the paper's": "reached",
        "the paper's, steps=100": "other recipe",
        "ours: minutes": "other recipe",
    }


def test_pairs_are_of_the_same_recipe_and_the_same_folds(tmp_path):
    measured(tmp_path, "cifar10-40", HALF, [0.9, 0.8, 0.7])
    measured(tmp_path, "cifar10-40", HALF, [0.95], " --set strength=1")
    measured(tmp_path, "cifar10-40", HALF, [0.6], " --set steps=100")
    measured(tmp_path, "cifar10-40", f"{HALF}-fixmatch", [0.8, 0.71])
    lines = all_lines([tmp_path], None)
    whole, strong = all_pairs(lines)
    assert (whole.folds, whole.differences, whole.verdict) == ((0, 1), (10.0, 9.0), "DebiasPL better")
    # 9.5 +- 12.706 * 0.7071 / sqrt(2)
    assert whole.interval == pytest.approx((9.5 - 6.353, 9.5 + 6.353), abs=1e-3)
    assert (strong.recipe, strong.differences) == ("ours: minutes, strength=1", (15.0,))
    assert (strong.interval, strong.verdict) == (None, "not tested with one fold")
    assert replace(whole, differences=(10.0, 1.0)).verdict == "not significant"
    assert replace(whole, differences=(-10.0, -9.0)).verdict == "FixMatch better"


def test_values_say_folds_and_minutes(lines):
    found = values(lines)
    (start,) = [one for one in found["lines"] if one["command"].endswith("/cifar10-40-start.json")]
    assert start["folds"] == [3, 4, 5]
    assert (start["together"], round(start["minutes"], 1)) == (8, 14.1)
    assert start["ran"].startswith("ResNet-9, contrastmatch with debiaser (strength=1, momentum=0.99), 20,000 steps")
    assert json.dumps(found)  # no number that JSON lacks
    commands = re.findall(r"debiaspl repeat (\S+) --fold (\d+)", REPEAT)
    assert len(commands) == 2
    assert all(int(fold) in read_recorded(Path(__file__).parents[2] / file).accuracy for file, fold in commands)


def test_it_overwrites_nothing_unasked(tmp_path):
    for file in (tmp_path / "all.html", tmp_path / "all.md"):
        file.write_text("mine")
        assert f"{file} exists already. Use --overwrite to replace it" in results("--page", file, code=1)
        assert file.read_text() == "mine"
        assert f"The page is {file}" in results("--page", file, "--overwrite")
    (tmp_path / "mine.svg").write_text("mine")
    assert "mine.svg exists already. Use --overwrite" in results("--page", tmp_path / "mine.md", code=1)
    said = results("--page", tmp_path / "x.html", "--protocol", "500/4000", "--measured", code=1)
    assert "--page shows all of it, and --measured and --protocol would not act. Leave them out." in said
    assert "is not a folder" in results("--page", tmp_path / "x.html", "--folder", tmp_path / "none", code=1)


@needs_chromium
@pytest.mark.slow
def test_in_a_browser_filters_choose_rows_and_nothing_overflows(tmp_path):
    results("--page", tmp_path / "all.html")
    with Chromium() as browser:
        page = browser.page((tmp_path / "all.html").as_uri(), width=390)
        assert page.errors() == []
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        choose = """(() => {
            const [, cell, method] = document.querySelectorAll('#paper .tools label > *');
            for (const [menu, text] of [[cell, 'CIFAR-10, 4 labels a class'], [method, 'DebiasPL']]) {
                menu.value = text;
                menu.dispatchEvent(new Event('change'));
            }
            return [...document.querySelectorAll('#paper tbody tr')].map(row => row.cells[1].textContent);
        })()"""
        shown = page.evaluate(choose)
        assert set(shown) == {"DebiasPL"}
        assert len(shown) < 25
        assert page.evaluate("document.querySelectorAll('#minutes svg[role=img]').length") >= 5
        assert [url for url in page.requests() if not url.startswith("file:")] == []

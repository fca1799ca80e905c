"""The lists fit 80 columns, whatever is in them, and can be filtered."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import debiaspl
from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS
from debiaspl.cli import app
from debiaspl.recipes import RECIPES
from debiaspl.recipes.repeat import read_recorded
from debiaspl.recipes.result_files import COPY, copy_text
from debiaspl.recipes.results import accuracy_by_recipe, rows

ROOT = Path(__file__).parents[2]
START = "results/start/cifar10-40/cifar10-40-start.json"


def shown(*typed: str, code: int = 0) -> str:
    ran = CliRunner().invoke(app, list(typed))
    assert ran.exit_code == code, ran.output
    return ran.output


@pytest.mark.parametrize("command", ["recipes", "results", "algorithms", "corrections"])
def test_a_list_fits_80_columns(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = shown(command).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 10


def test_recipes_are_grouped_by_cell_with_the_papers_number_ours_and_the_cost():
    text = shown("recipes")
    assert {line.split()[0] for line in text.splitlines() if line} >= set(RECIPES)
    cell = text.split("CIFAR-10, 4 labels a class\n")[1].split("\n\n")[0]
    lines = {line.split()[0]: line.split()[1:] for line in cell.splitlines()}
    assert lines["cifar10-40"] == ["DebiasPL", "94.6", "-", "1.3", "h"]
    ours = f"{accuracy_by_recipe()['cifar10-40-minutes-fixmatch']:.1f}"
    assert lines["cifar10-40-minutes-fixmatch"] == ["FixMatch", "-", ours, "<3", "min"]
    assert len(lines) == 9


def test_recipes_are_listed_where_a_folder_has_other_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results" / "gain").mkdir(parents=True)
    (tmp_path / "results" / "gain" / "mine.json").write_text("{}")
    assert accuracy_by_recipe() == {}
    assert "digits-10" in shown("recipes", "digits")
    assert "mine.json is not in the folder of a cell" in shown("results", code=1)


def test_a_cost_begins_with_the_time_and_where():
    """Or says that nobody has measured it: so the list can print the time alone."""
    costs = {recipe.cost for recipe in RECIPES.values()}
    assert all(cost.startswith("not measured: ") or len(cost.split(" on ")[0]) <= 6 for cost in costs), costs


def test_words_and_measured_choose_rows():
    chosen = json.loads(shown("recipes", "LT100", "fixmatch", "--measured", "--json"))
    assert [one["name"] for one in chosen] == [
        "cifar10-lt100-10pct-minutes-fixmatch",
        "cifar10-lt100-10pct-start-fixmatch",
    ]
    found = json.loads(shown("results", "eurosat", "debiaspl", "--measured", "--json"))
    assert [(row["cell"], row["recipe"]) for row in found] == [("eurosat-40", "start")]
    assert "no recipe has owl in its name or description" in shown("recipes", "owl", code=1)
    assert "no result has owl and x in its cell, method or recipe" in shown("results", "owl", "x", code=1)


def test_algorithms_are_listed_with_paper_views_and_settings():
    listed = {row["name"]: row for row in json.loads(shown("algorithms", "--json"))}
    assert list(listed) == [*ALGORITHMS, *HINTED, *STARTS]
    assert listed["comatch"]["paper"] == "Li, Xiong and Hoi, 2021"
    assert (listed["comatch"]["views"], listed["comatch"]["frozen"]) == ("1 + 2", True)
    assert listed["remixmatch"]["frozen"] is False, "with its default settings it turns pictures"
    assert listed["supervised"]["needs"] == "labels"
    assert all(row["about"] and row["needs"] for row in listed.values())
    text = shown("algorithms")
    assert all(f"\n{name} " in text for name in listed)
    assert [one["name"] for one in json.loads(shown("algorithms", "uda", "--json"))][:2] == ["threshold", "temperature"]
    assert "there is no algorithm named 'udo'" in shown("algorithms", "udo", code=1)
    assert "strength" in {one["name"] for one in json.loads(shown("corrections", "debiaser", "--json"))}


def test_the_package_has_a_copy_of_the_results():
    """Where this fails: python benchmarks/copy_results.py"""
    assert COPY.read_text() == copy_text(ROOT / "results")
    assert COPY.stat().st_size < 100_000
    here, there = (rows(place / "gain", place / "start") for place in (ROOT / "results", COPY))
    assert [row.to_json() | {"file": ""} for row in here] == [row.to_json() | {"file": ""} for row in there]


@pytest.mark.slow
def test_an_installed_package_prints_its_results(tmp_path):
    """As a wheel is laid out: the package alone, in another folder. Its tables name files, which repeat finds."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(debiaspl.__file__).parent, tmp_path / "site" / "debiaspl", ignore=ignored)
    (tmp_path / "empty").mkdir()
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); from debiaspl.__main__ import main; main()"
    typed = [sys.executable, "-I", "-c", code, "results", "--json"]
    ran = subprocess.run(typed, cwd=tmp_path / "empty", capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert START in {row["file"] for row in found}
    assert [row["accuracy"] for row in found] == [row["accuracy"] for row in json.loads(shown("results", "--json"))]


def test_repeat_finds_a_file_of_the_copy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = read_recorded(Path(START))
    assert (found.recipe.name, list(found.accuracy)) == ("cifar10-40-start", [3, 4, 5])
    assert found.start is not None

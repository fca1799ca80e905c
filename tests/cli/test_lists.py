"""``debiaspl list``: tables of at most 80 columns, on a terminal and in a file, that can be filtered."""

import json

import pytest

from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS
from debiaspl.recipes import RECIPES
from tests.typed import debiaspl


def shown(*typed: str, code: int = 0) -> str:
    ran = debiaspl("list", *typed)
    assert ran.exit_code == code, ran.output
    return ran.output


@pytest.mark.parametrize("columns", ["80", "200"])
@pytest.mark.parametrize(
    "kind", ["recipes", "algorithms", "corrections", "settings", "settings digits-10 --set correction=debiaser"]
)
def test_a_list_fits_80_columns(kind, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    lines = shown(*kind.split()).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 10


def test_recipes_are_listed_with_their_whole_names_and_filtered():
    listed = [recipe["name"] for recipe in json.loads(shown("recipes", "--json"))]
    assert listed == list(RECIPES)
    assert set(listed) <= set(shown("recipes").split())
    chosen = [recipe["name"] for recipe in json.loads(shown("recipes", "LT100", "--json"))]
    assert chosen
    assert set(chosen) < set(listed)
    assert "no recipe has owl" in shown("recipes", "owl", code=1)


def test_algorithms_and_corrections_are_listed():
    listed = {row["name"]: row for row in json.loads(shown("algorithms", "--json"))}
    assert list(listed) == [*ALGORITHMS, *HINTED, *STARTS]
    assert (listed["comatch"]["views"], listed["comatch"]["frozen"]) == ("1 + 2", True)
    assert listed["supervised"]["needs"] == "labels"
    assert len({row["about"] for row in listed.values()}) == len(listed)  # also of two in one module
    text = shown("algorithms")
    assert all(f"\n{name} " in text for name in listed)
    assert {"debiaser", "alignment"} <= {row["name"] for row in json.loads(shown("corrections", "--json"))}
    assert "no correction has owl" in shown("corrections", "owl", code=1)


def test_settings_are_those_of_a_recipe_and_of_the_parts_that_are_asked_for():
    def names(*typed: str) -> set[str]:
        return {row["name"] for row in json.loads(shown("settings", *typed, "--json"))}

    assert {"steps", "learning_rate", "strength"} <= names("digits-10")
    assert "temperature" in names("--set", "algorithm=uda") - names()
    assert "there is no algorithm named 'udo'" in shown("settings", "--set", "algorithm=udo", code=1)
    assert "Expected one" in shown("settings", "a", "b", code=1)
    listed = shown("settings", "cifar10-40", "--length", "start")
    assert all(text in listed for text in (" 64, 128, 256,", " 20,000")), "a list may be wrapped, a number not"

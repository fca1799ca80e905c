"""``debiaspl results --protocol``: published numbers with their source, and our own beside them, in 80 columns."""

import json

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.recipes import RECIPES
from debiaspl.recipes.method_names import method_name
from debiaspl.recipes.published import PROTOCOLS, PUBLISHED, SOURCES
from tests.recipes.test_results import measured

CELL = "cifar10-lt-500-4000-g100"


def shown(*typed: str, code: int = 0) -> str:
    ran = CliRunner().invoke(app, ["results", *typed])
    assert ran.exit_code == code, ran.output
    return ran.output


def test_every_published_number_is_of_a_recipe_and_has_a_source():
    assert {row.cell for row in PUBLISHED} <= set(RECIPES)
    assert {row.source for row in PUBLISHED} == set(SOURCES)
    assert all(row.table in SOURCES[row.source] or row.table[-1] in SOURCES[row.source] for row in PUBLISHED)
    assert len({(row.cell, row.method, row.source) for row in PUBLISHED}) == len(PUBLISHED), "none twice"
    assert all(20 < row.accuracy < 100 and 0 < row.spread < 7 for row in PUBLISHED)
    # Three numbers that many papers quote.
    quoted = {(row.method, row.source, row.cell): row.accuracy for row in PUBLISHED}
    assert quoted["FixMatch", "DASO", CELL] == 67.8
    assert quoted["ACR", "CCL", f"{CELL}-reversed"] == 85.0
    assert quoted["DASO", "DASO", "cifar100-lt-150-300-g20"] == 52.9


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_it_fits_into_80_columns(protocol, tmp_path):
    cells = [name for name in RECIPES if f"-lt-{protocol.replace('/', '-')}-" in name and "pretrain" not in name]
    for name in cells:
        measured(tmp_path, name, name, [0.5], " --set algorithm=contrastmatch --set correction=logit-adjustment")
    printed = shown("--protocol", protocol, "--folder", str(tmp_path))
    assert max(map(len, printed.splitlines())) <= 80
    assert "contrastmatch +" in printed  # the protocol's recipe
    assert ("FixMatch +" in printed) == protocol.startswith(("500/", "1500/"))  # the short one, on CIFAR-10 alone


def test_published_and_own_rows_stand_beside_each_other(tmp_path):
    measured(tmp_path, CELL, CELL, [0.80, 0.82], " --set steps=75000")
    measured(tmp_path, f"{CELL}-reversed", f"{CELL}-reversed", [0.7, 0.72], " --set steps=75000")
    measured(tmp_path, CELL, f"{CELL}-fixmatch", [0.71])
    measured(tmp_path, "cifar10-lt-500-4000-g150", "cifar10-lt-500-4000-g150", [0.6])
    (tmp_path / "search.json").write_text("{}")
    printed = shown("--protocol", "500/4000", "--folder", str(tmp_path))
    lines = [line.split() for line in printed.splitlines()]
    assert ["FixMatch", "67.8", "73.0", "62.5", "62.9", "DASO"] in lines
    assert ["DebiasPL", "81.0", "71.0", "ours", "2"] in lines
    assert ["DebiasPL", "60.0", "ours", "1"] in lines
    assert "ours 2: steps=75000, 2 folds." in printed
    rows = json.loads(shown("--protocol", "500/4000", "--folder", str(tmp_path), "--json"))
    (own,) = [row for row in rows if row["source"] == "ours" and row["method"] == "FixMatch"]
    assert own == {
        "cell": CELL, "method": "FixMatch", "accuracy": 71.0, "source": "ours", "where": "1 fold", "spread": None,
        "folds": [71.0], "numbers": [0], "seconds": [60.0], "together": 2, "gpu": "a GPU",
        "file": str(tmp_path / CELL / f"{CELL}-fixmatch.json"),
        "ran": "WRN-28-2, fixmatch, 250,000 steps of 64 + 128 images",
    }  # fmt: skip


SHORT_FORM = f"{CELL}-start"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (("correction=none",), "FixMatch"),
        ((), "DebiasPL"),
        (("strength=0", "margin_strength=1", "labeled_strength=1"), "DebiasPL's margins"),
        (("strength=0", "labeled_strength=1"), "DebiasPL's margins"),
        (("strength=0",), "FixMatch"),
        (("correction=alignment+debiaser",), "DebiasPL + alignment"),
        (("correction=alignment+debiaser", "strength=0", "margin_strength=1"), "DebiasPL's margins + alignment"),
        (("correction=simpro",), "SimPro"),
        (("correction=alignment+logit-adjustment",), "FixMatch + alignment+logit-adjustment"),
        (("algorithm=abc", "correction=none"), "ABC"),
        (("algorithm=acr",), "ACR + DebiasPL"),
        (("algorithm=acr", "strength=0", "margin_strength=1"), "ACR + DebiasPL's margins"),
        (("algorithm=softmatch", "correction=alignment"), "softmatch + alignment"),
    ],
)
def test_methods_are_called_as_in_papers(settings, name):
    """Also in our short recipes, where FixMatch has a contrast."""
    assert method_name(RECIPES[CELL].with_settings(settings)) == name
    assert method_name(RECIPES[SHORT_FORM].with_settings(settings)) == name


def test_short_recipes_are_told_from_the_protocol_s(tmp_path):
    """Of two DebiasPL rows, one is the protocol's recipe; the notes say what the other one is."""
    measured(tmp_path, CELL, CELL, [0.8])
    measured(tmp_path, CELL, SHORT_FORM, [0.7])
    measured(tmp_path, CELL, SHORT_FORM, [0.6], " --set strength=0 --set margin_strength=1")
    printed = shown("--protocol", "500/4000", "--folder", str(tmp_path))
    lines = [line.split() for line in printed.splitlines()]
    assert ["DebiasPL", "80.0", "ours", "1"] in lines
    assert ["DebiasPL", "70.0", "ours", "2"] in lines
    assert ["DebiasPL's", "margins", "60.0", "ours", "3"] in lines
    assert "ours 1: 1 fold." in printed
    assert "ours 2: from a start, 1 fold." in printed
    words = " ".join(printed.split())
    assert "from a start: our short recipe, not the protocol's" in words
    assert "DebiasPL's margins: the Debiaser widens the margins of the losses, and no label is debiased." in words


def test_what_is_not_measured_is_open(tmp_path):
    lines = [line.split() for line in shown("--protocol", "500/4000", "--folder", str(tmp_path)).splitlines()]
    assert ["DebiasPL", "open", "open", "open", "open", "ours"] in lines


def test_refused_in_words(tmp_path):
    assert "there is no protocol '5/4'. Expected N1/M1, one of 500/4000," in shown("--protocol", "5/4", code=1)
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes", [0.5])
    typed = ("--protocol", "500/4000", "--folder", str(tmp_path))
    assert "cifar10-40-minutes is not a recipe of a standard long-tail protocol" in " ".join(
        shown(*typed, code=1).split()
    )
    assert "is not a folder" in shown(*typed[:3], str(tmp_path / "none"), code=1)

"""benchmarks/results.py and what is made of it: every file of results/ has a row, a command, a place on the page."""

import itertools
import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import repeat
from benchmarks.published import ELSEWHERE, PROTOCOL_SOURCES, PUBLISHED, SOURCES, VOID
from benchmarks.results import (
    FOLDERS,
    RESULTS,
    ROOT,
    Pair,
    Row,
    chosen,
    differences,
    named,
    pairs,
    read_row,
    recorded_recipe,
    rows,
    start_recipe,
)
from benchmarks.results_figure import minutes_figure
from benchmarks.results_page import difference, text
from debiaspl._over_seeds import sign_flip
from debiaspl.recipes import RECIPES, recipe
from debiaspl.training import Recipe
from debiaspl.training.settings import parse_settings
from tests.training.tiny import TINY

CELL = "cifar10-40"


@pytest.fixture(scope="module")
def found() -> list[Row]:
    return rows()


def measured(root: Path, name: str, accuracy: list[float], *settings: str, **more: object) -> Row:
    recipe = parse_settings(named(name), settings)
    values = {
        "recipe": recipe.to_json(),
        "together": 2,
        "folds": [{"fold": fold, "accuracy": value, "seconds": 60.0} for fold, value in enumerate(accuracy)],
    }
    path = root / "gain" / chosen(name)[0] / f"{'-'.join([name, *settings])}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**values, **more}))
    return read_row(path, root)


def test_docs_hold_what_the_command_writes(found):
    hint = "run: python -m benchmarks.results_page"
    assert (ROOT / "docs" / "results.md").read_text() == text(found), hint
    assert (ROOT / "docs" / "results.svg").read_text() == minutes_figure(found), hint


def typed(command: str) -> Recipe:
    """The recipe of a command."""
    words = shlex.split(command)
    assert words[:2] == ["debiaspl", "train"]
    options = list(zip(words[2::2], words[3::2], strict=True))
    which = [dict(options).get(name) for name in ("--recipe", "--length", "--method")]
    return parse_settings(recipe(*which), [value for name, value in options if name == "--set"])


def test_every_file_has_a_row_and_a_command_that_makes_it(found):
    files = [path for pattern in FOLDERS for path in RESULTS.glob(pattern) if "search" not in path.stem]
    assert len(found) == len(files) >= 44
    for row in found:
        values = json.loads((RESULTS / row.file).read_text())
        made = typed(row.commands[-1])
        assert differences(made, recorded_recipe(values["recipe"])) == [], row.file
        assert made.seed == row.folds[0]
        assert (len(row.commands) == 2) == bool(made.start)
        if made.start:
            assert differences(typed(row.commands[0]), start_recipe(values)) == []
        assert ("minutes" in row.length) == (row.minutes < 9 and "gain/" in row.file)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("cifar10-40", (CELL, None, None)),
        ("cifar10-40-fixmatch", (CELL, None, "fixmatch")),
        ("cifar10-40-fast", (CELL, "fast", None)),
        ("cifar10-40-start", (CELL, "start", None)),
        ("cifar10-40-minutes-fixmatch", (CELL, "minutes", "contrastmatch")),
        ("cifar10-lt100-10pct-start-margins", ("cifar10-lt100-10pct", "start", "contrastmatch+margins")),
        ("imagenet-1pct-multiview", ("imagenet-1pct", None, "multiview")),
        ("cifar10-lt200-10pct-balanced-pretrain", ("cifar10-lt200-10pct-balanced", None, "moco")),
        ("eurosat-pretrain", ("eurosat-40", None, "moco")),
    ],
)
def test_names_up_to_583f46c_are_a_cell_a_length_and_a_method(name, parts):
    assert chosen(name) == parts
    assert named(name)


@pytest.mark.parametrize(
    ("name", "settings", "method"),
    [
        (CELL, (), "DebiasPL"),
        (CELL, ("strength=0",), "FixMatch"),
        (f"{CELL}-start", (), "contrastmatch+debiaser"),
        (f"{CELL}-start-fixmatch", (), "contrastmatch"),
        (f"{CELL}-minutes-fixmatch", ("correction=logit-adjustment",), "contrastmatch+logit-adjustment"),
        (f"{CELL}-start", ("strength=0", "margin_strength=1"), "contrastmatch+margins"),
        (f"{CELL}-start", ("algorithm=abc",), "abc+debiaser"),
    ],
)
def test_a_row_is_called_what_ran(tmp_path, name, settings, method):
    assert measured(tmp_path, name, [0.5], *settings).method == method


def test_a_row_says_how_it_differs_from_the_recipe_of_today(tmp_path):
    assert measured(tmp_path, f"{CELL}-minutes", [0.5], "log_every=7", "strength=0.5").changed == ()
    assert measured(tmp_path, f"{CELL}-minutes", [0.5], "steps=60000").changed == ("steps=60000",)
    many = "memory=0", "relations=0", "key_decay=0", "temperature=0.2", "learning_rate=0.06", "steps=77"
    row = measured(tmp_path, f"{CELL}-minutes", [0.5], *many)
    assert row.changed == ("earlier recipe of 77 steps",)
    start = "debiaspl train --recipe cifar10-pretrain --set steps=300"
    row = measured(tmp_path, f"{CELL}-start", [0.5], start_command=start)
    assert row.changed == ("start: steps=300",)
    assert row.commands == (
        f"debiaspl train --recipe {CELL} --method moco --set steps=300",
        f"debiaspl train --recipe {CELL} --length start --set seed=0",
    )


def test_pairs_are_of_the_same_recipe_and_the_same_folds(tmp_path):
    debiased, plain = f"{CELL}-minutes", f"{CELL}-minutes-fixmatch"
    each = [
        measured(tmp_path, debiased, [0.9, 0.8, 0.7]),
        measured(tmp_path, debiased, [0.95], "strength=1"),
        measured(tmp_path, debiased, [0.6], "steps=100"),
        measured(tmp_path, plain, [0.8, 0.71]),
    ]
    first, strong = pairs(each)
    assert (first.folds, first.differences, strong.differences) == ((0, 1), (10.0, 9.0), (15.0,))


def test_nothing_is_tested_with_fewer_than_six_folds(found):
    row = found[0]
    assert difference(Pair(row, (0, 1, 2, 3, 4), 0, 0, (1.0, 2.0, 3.0, 4.0, 5.0))) == "+3.0"
    assert (
        difference(Pair(row, tuple(range(6)), 0, 0, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))) == "+3.5 (+1.5 to +5.5, p = 0.031)"
    )
    page = text(found)
    assert "n.s." not in page
    assert ", p = " not in page, "no pair here has six folds"


def test_the_sign_flip_test_is_exact():
    differences = [0.4, -1.0, 2.5, 3.0, 0.1, -0.3, 1.7]
    sums = [abs(sum(sign * value for sign, value in zip(signs, differences, strict=True)))
            for signs in itertools.product((-1, 1), repeat=len(differences))]  # fmt: skip
    assert sign_flip(differences) == sum(one >= abs(sum(differences)) - 1e-9 for one in sums) / len(sums)


def test_published_numbers_have_a_source():
    assert {row.cell for row in PUBLISHED} | {one.cell for one in ELSEWHERE} <= set(RECIPES)
    assert {row.source for row in PUBLISHED} == set(PROTOCOL_SOURCES)
    assert {one.source for one in ELSEWHERE} == set(SOURCES)
    assert len({(row.cell, row.method, row.source) for row in PUBLISHED}) == len(PUBLISHED), "none twice"


def test_no_row_with_a_uniform_prior_is_called_debiaspl(found):
    void = [row for row in PUBLISHED if row.void]
    assert len(void) == 8
    assert VOID.keys() == {("USB", "DebiasPL")}
    assert not [row for row in PUBLISHED if row.method == "DebiasPL"], "the suite alone printed such rows"
    page = text(found)
    shown = [row for row in void if row.cell.startswith("cifar10-lt-500-4000")]  # the protocol that was run
    assert page.count(" USB (void)") == len(shown) == 3


def test_a_file_is_repeated_with_its_start_and_compared(tmp_path, monkeypatch):
    recipe = replace(TINY, name="digits-10", start="runs/digits-pretrain")
    start = "debiaspl train --recipe digits-pretrain --set steps=2 --set unlabeled_batch=8 --set seed=0"
    values = {
        "recipe": recipe.to_json(),
        "start_command": start,
        "folds": [{"fold": fold, "accuracy": value} for fold, value in ((3, 0.89), (4, 0.9), (5, 0.91))],
    }
    jobs = list(repeat.planned(values, [3, 7], tmp_path))
    assert [(fold, folder.name, one.seed) for fold, folder, one in jobs] == [
        *((None, "start-3", 3), (3, "fold-3", 3)),
        *((None, "start-7", 7), (7, "fold-7", 7)),
    ]
    assert jobs[1][2].start == str(tmp_path / "start-3")
    recorded = repeat.recorded_accuracy(values)
    assert repeat.compared(recorded, {3: 94.9})[-1].startswith("Within")  # 90 +- 4.303 * 1 * sqrt(4 / 3)
    assert repeat.compared(recorded, {3: 95.0})[-1].startswith("Outside, in fold 3")
    assert "cannot be tested" in repeat.compared({3: 90.0}, {3: 90.0})[-1]

    trained = []
    monkeypatch.setattr(repeat, "train", lambda recipe, out, **_: trained.append(recipe) or {"accuracy": 0.5})
    (tmp_path / "made.json").write_text(json.dumps(values))
    monkeypatch.setattr("sys.argv", ["repeat", str(tmp_path / "made.json"), "--fold", "3", "--set", "steps=9"])
    repeat.main()
    assert [one.steps for one in trained] == [9, 9]


def test_every_file_can_be_repeated(tmp_path):
    for path in (path for pattern in FOLDERS for path in RESULTS.glob(pattern) if "search" not in path.stem):
        values = json.loads(path.read_text())
        folds = list(repeat.recorded_accuracy(values))
        assert [fold for fold, *_ in repeat.planned(values, folds, tmp_path) if fold is not None] == folds

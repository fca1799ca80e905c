"""``debiaspl results``: every file has its row, every cell that is not measured is open, and nothing is left out."""

import json
from pathlib import Path
from statistics import mean

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.recipes import RECIPES
from debiaspl.recipes.all_results import all_lines
from debiaspl.recipes.results import KINDS, METHODS, rows
from debiaspl.training import RunError

LONGER = ", steps=60000"
ROOT = Path(__file__).parents[2]


def measured(folder: Path, cell: str, name: str, accuracy: list[float], settings: str = "", **recipe: int) -> None:
    command = f"debiaspl train --recipe {name}{settings} --set seed=0"
    folds = [{"accuracy": value, "seconds": 60.0 + fold} for fold, value in enumerate(accuracy)]
    (folder / cell).mkdir(exist_ok=True)
    chosen = RECIPES[name].with_settings(part for part in settings.split() if "=" in part)
    changes = {"command": command, "device": "a GPU", "together": 2, "folds": folds}
    text = json.dumps({"recipe": {**chosen.to_json(), **recipe}, **changes})
    (folder / cell / f"{name}{settings.replace(' --set ', '-')}.json").write_text(text)


def of(folder: Path, cell: str, recipe: str = "minutes") -> dict[str, object]:
    return {row.method: row for row in rows(folder) if (row.cell, row.recipe) == (cell, recipe)}


def test_an_empty_folder_is_a_list_of_open_cells(tmp_path):
    found = rows(tmp_path)
    assert {row.standing for row in found} == {"open"}
    assert {row.cell for row in found} >= {"cifar10-lt100-10pct", "cifar10-40", "cifar10-250", "eurosat-40"}
    # Whatever is open can be run by name.
    for row in found:
        assert row.cell + KINDS[row.recipe] + METHODS[row.method] in RECIPES


def test_methods_variants_and_recipes_each_have_their_row(tmp_path):
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes", [0.95, 0.96])
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes", [0.5], " --set strength=0.25")
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes-fixmatch", [0.861])
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes-supervised", [0.2])
    measured(tmp_path, "cifar10-40", "cifar10-40", [0.9])
    found = of(tmp_path, "cifar10-40")
    assert list(found) == ["DebiasPL", "DebiasPL, strength=0.25", "FixMatch", "supervised"]
    assert found["DebiasPL"].accuracy == (95.0, 96.0)
    assert found["DebiasPL"].seconds == (60.0, 61.0)
    assert [row.standing for row in found.values()] == ["other recipe"] * 3 + [""]
    assert [(row.method, row.standing) for row in of(tmp_path, "cifar10-40", "paper").values()] == [
        ("DebiasPL", "below"),
        ("FixMatch", "open"),
    ]


def test_margins_without_debiased_labels_are_not_called_debiaspl(tmp_path):
    cell, name = "cifar10-lt100-10pct", "cifar10-lt100-10pct-start"
    measured(tmp_path, cell, name, [0.7])
    measured(tmp_path, cell, f"{name}-margins", [0.8])
    found = of(tmp_path, cell, "start")
    margins = "DebiasPL's margins + alignment"
    assert list(found) == ["DebiasPL", "FixMatch", margins]
    assert (found["DebiasPL"].accuracy, found[margins].accuracy) == ((70.0,), (80.0,))
    assert found[margins].paper is None


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ("strength=0 margin_strength=1 labeled_strength=1", "DebiasPL's margins"),
        ("strength=0", "FixMatch"),
        ("correction=none", "FixMatch"),
        ("correction=logit-adjustment", "FixMatch + logit-adjustment"),
    ],
)
def test_what_corrects_a_run_names_it_and_not_its_file(tmp_path, settings, name):
    """Beside the paper's DebiasPL such a run would look as if it were that."""
    typed = "".join(f" --set {setting}" for setting in settings.split())
    measured(tmp_path, "cifar10-40", "cifar10-40-start", [0.7], typed)
    (row,) = [row for row in rows(tmp_path) if row.accuracy]
    assert (row.method.partition(",")[0], row.paper) == (name, None)


def test_what_else_corrects_fixmatch_is_part_of_its_name(tmp_path):
    """Beside the paper's FixMatch it would look as if that had become better."""
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes-fixmatch", [0.7])
    changed = " --set correction=alignment+logit-adjustment --set threshold=0.9"
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes-fixmatch", [0.8], changed)
    found = of(tmp_path, "cifar10-40")
    assert list(found)[1:] == ["FixMatch", "FixMatch + alignment+logit-adjustment, threshold=0.9"]
    assert [row.paper for row in list(found.values())[1:]] == [86.1, None]
    assert {line.method for line in all_lines([tmp_path], None) if line.accuracy} == {
        "FixMatch",
        "FixMatch + alignment+logit-adjustment",
    }


def test_a_setting_typed_at_its_default_is_no_change(tmp_path):
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes-fixmatch", [0.7], " --set threshold=0.95")
    assert of(tmp_path, "cifar10-40")["FixMatch"].accuracy == (70.0,)


def test_another_start_is_told(tmp_path):
    name = "cifar10-lt100-10pct-start"
    measured(tmp_path, "cifar10-lt100-10pct", name, [0.7])
    path = tmp_path / "cifar10-lt100-10pct" / f"{name}.json"
    start = "debiaspl train --recipe cifar10-lt100-10pct-pretrain --set seed=0"
    for more, told in (("", "DebiasPL"), (" --set steps=300", "DebiasPL, start: steps=300")):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"start_command": start + more}))
        assert of(tmp_path, "cifar10-lt100-10pct", "start")[told].accuracy == (70.0,)


def test_only_the_paper_s_own_recipe_reaches_the_paper(tmp_path):
    measured(tmp_path, "cifar10-40", "cifar10-40", [0.95])
    measured(tmp_path, "cifar10-40", "cifar10-40", [0.95], " --set strength=1")
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes", [0.95])
    own = of(tmp_path, "cifar10-40", "paper")
    assert own["DebiasPL"].standing == "reached"
    assert own["DebiasPL, strength=1"].standing == "other recipe"
    assert of(tmp_path, "cifar10-40")["DebiasPL"].standing == "other recipe"


def test_what_a_recipe_gave_before_it_was_changed_is_called_earlier(tmp_path):
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes", [0.5], steps=77, seed=3, log_every=5, labeled_batch=3)
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes", [0.5], " --set strength=2", log_every=5, seed=3)
    found = of(tmp_path, "cifar10-40")
    assert list(found) == ["DebiasPL", "DebiasPL, earlier recipe of 77 steps", "DebiasPL, strength=2", "FixMatch"]
    assert found["DebiasPL"].standing == "open", "what the recipe gives now is not known"


def test_a_recipe_that_had_another_length_is_told_by_it(tmp_path):
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes", [0.5], steps=77)
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes", [0.5], " --set strength=2", steps=77)
    assert list(of(tmp_path, "cifar10-40"))[1:3] == ["DebiasPL, steps=77", "DebiasPL, strength=2, steps=77"]


def test_settings_that_a_recipe_has_anyway_are_no_variant(tmp_path):
    steps = RECIPES["cifar10-40-minutes"].steps
    same = f" --set steps={steps} --set log_every=7 --set strength=0.5"
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes", [0.5], same, log_every=7)
    assert list(of(tmp_path, "cifar10-40")) == ["DebiasPL", "FixMatch"]


def test_a_cell_whose_name_begins_another_keeps_to_itself(tmp_path):
    measured(tmp_path, "cifar10-lt200-10pct-balanced", "cifar10-lt200-10pct-balanced-minutes", [0.9])
    assert of(tmp_path, "cifar10-lt200-10pct")["DebiasPL"].standing == "open"
    assert of(tmp_path, "cifar10-lt200-10pct-balanced")["DebiasPL"].standing == "other recipe"


@pytest.mark.parametrize(("name", "text"), [("stranger", "{}"), ("cifar10-40-minutes", "{}"), ("cifar10-40", "[")])
def test_a_file_that_is_no_result_is_named(tmp_path, name, text):
    (tmp_path / "cifar10-40").mkdir()
    (tmp_path / "cifar10-40" / f"{name}.json").write_text(text)
    with pytest.raises(RunError, match=f"{name}.json"):
        rows(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"together": "3"}, "together is '3', expected a number of runs"),
        ({"command": None}, "its command, start_command or device is not text"),
        ({"device": ["x"]}, "its command, start_command or device is not text"),
        ({"start_command": 3}, "its command, start_command or device is not text"),
        ({"folds": []}, "it has no folds"),
        ({"folds": [{"accuracy": float("nan"), "seconds": 1.0}]}, "the accuracy of a fold is nan, expected a number"),
        ({"folds": [{"accuracy": 0.5, "seconds": "9"}]}, "the seconds of a fold is '9', expected a number"),
        ({"folds": [{"seconds": 9.0}]}, "it lacks 'accuracy'"),
        ({"recipe": {"name": "cifar10-41"}}, "there is no recipe 'cifar10-41' any more"),
    ],
)
def test_a_damaged_file_is_refused_in_words(change, words, tmp_path):
    measured(tmp_path, "cifar10-40", "cifar10-40-minutes", [0.5])
    path = tmp_path / "cifar10-40" / "cifar10-40-minutes.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RunError) as caught:
        rows(tmp_path)
    assert str(caught.value) == (
        f"{path} cannot be read as results of benchmarks/gain.py: {words}. Measure it again, or remove it."
    )


def test_a_folder_of_something_else_is_told(tmp_path):
    """One that is too high, or too low, or empty, is not a list of what was never measured."""
    measured(tmp_path, "cifar10-9", "cifar10-40-minutes", [0.5])
    for folder in (tmp_path, tmp_path / "cifar10-9"):
        shown = CliRunner().invoke(app, ["results", "--folder", str(folder)])
        assert shown.exit_code == 1
        assert "is not in the folder of a cell. Expected a folder such as" in shown.output
    (tmp_path / "empty").mkdir()
    shown = CliRunner().invoke(app, ["results", "--folder", str(tmp_path / "empty")])
    assert shown.exit_code == 1
    assert "holds no results. Expected a folder for each cell" in shown.output


def test_the_command_prints_what_lies_in_the_repository():
    shown = CliRunner().invoke(app, ["results", "--json"])
    assert shown.exit_code == 0, shown.output
    found = {(row["cell"], row["method"], row["recipe"]): row for row in json.loads(shown.output)}
    root = Path(__file__).parents[2] / "results"
    files = [*(root / "gain").glob("*/*.json"), *(root / "start").glob("*/*.json")]
    assert len([row for row in found.values() if row["accuracy"]]) == len(files)
    for cell, least, papers in (
        ("cifar10-lt100-10pct", 4, (79.2, 67.3)),
        ("cifar10-40", 3, (94.6, 86.1)),
        ("cifar10-lt200-10pct-balanced", 9, (83.5, 72.1)),
    ):
        ours, theirs = (found[cell, method, "minutes"] for method in ("DebiasPL", "FixMatch"))
        assert len(ours["accuracy"]) == len(theirs["accuracy"]) >= 3
        pairs = zip(ours["accuracy"], theirs["accuracy"], strict=True)
        assert all(own > other + least for own, other in pairs)
        assert (ours["paper"], theirs["paper"]) == papers
        assert max(ours["seconds"] + theirs["seconds"]) < 180
        assert "H200" in ours["gpu"]
    ours, theirs = (found["cifar10-lt100-10pct", method, "minutes"]["accuracy"] for method in ("DebiasPL", "FixMatch"))
    assert mean(ours) > mean(theirs) + 5
    assert not [row for row in found.values() if row["standing"] in ("reached", "below")], (
        "no recipe of the paper has run"
    )


def test_a_missing_folder_teaches(tmp_path):
    shown = CliRunner().invoke(app, ["results", "--folder", str(tmp_path / "none")])
    assert shown.exit_code != 0
    assert "is not a folder" in shown.output


def test_all_results_can_be_read():
    for path in (Path(__file__).parents[2] / "results").rglob("*.json"):
        json.loads(path.read_text())

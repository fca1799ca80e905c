"""``debiaspl repeat``: runs what a file records, on small files of digits, and compares with the folds in it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.recipes.repeat import Planned, Recorded, compared, in_words, plan, read_recorded, recorded_folds
from debiaspl.training import Recipe
from tests.training.tiny import EAGER, results

ROOT = Path(__file__).parents[2]
START = "debiaspl train --recipe digits-pretrain --set steps=2 --set width=4 --set unlabeled_batch=16 --set memory=0"


def written(path: Path, recipe: Recipe, accuracy: list[float], **more: object) -> Path:
    folds = [{"fold": fold, "accuracy": value, "seconds": 1.0} for fold, value in enumerate(accuracy)]
    path.write_text(json.dumps({"recipe": recipe.to_json(), "command": "debiaspl train", "folds": folds, **more}))
    return path


def typed(*arguments: object, code: int = 0) -> str:
    ran = CliRunner().invoke(app, ["repeat", *map(str, arguments)])
    assert ran.exit_code == code, ran.output
    return ran.output


def test_a_run_is_repeated_from_its_own_results_and_from_a_file_of_folds(tmp_path):
    out = tmp_path / "first"
    said = typed(written(tmp_path / "made.json", EAGER, [0.1, 0.12, 0.11]), "--fold", 2, "--out", out)
    assert "made.json records tiny, folds 0, 1, 2." in said
    assert "does not record" not in said
    ran = results(out / "fold-2")
    assert ran["recipe"] == replace(EAGER, seed=2).to_json()
    now = 100 * ran["accuracy"]
    assert f"fold 2: recorded 11.00 %, now {now:.2f} % ({now - 11:+.2f})" in said
    assert ("Within the interval" in said) == (json.loads((out / "repeat.json").read_text())["within"])
    # One fold has no spread, and the same recipe on this machine has the same number.
    again = typed(out / "fold-2" / "results.json", "--out", tmp_path / "second", "--json")
    found = json.loads(again[again.index("{") :])
    assert found["folds"] == [{"fold": 2, "recorded": now, "now": now, "within": None}]
    assert in_words(found)[-1].startswith("The file records one fold")


def test_a_fold_that_is_not_recorded_is_named_before_training(tmp_path):
    recorded = read_recorded(written(tmp_path / "made.json", EAGER, [0.1, 0.12]))
    said = recorded_folds(plan(recorded, [1, 4], tmp_path / "out"))
    assert said[0].endswith("made.json records tiny, folds 0, 1.")
    assert said[1:] == ["It does not record fold 4: there is no number to compare with."]


def test_its_start_is_trained_first_and_a_rehearsal_is_not_compared(tmp_path):
    recipe = replace(EAGER, start="runs/digits-pretrain")
    file = written(tmp_path / "made.json", recipe, [0.5, 0.6], start_command=START)
    out = tmp_path / "out"
    said = typed(file, "--fold", 1, "--set", "steps=3", "--set", "log_every=1", "--out", out)
    assert (out / "start" / "results.json").exists()
    assert results(out / "fold-1")["recipe"]["start"] == str(out / "start")
    assert "Not comparable: steps=3 was changed" in said
    again = file, "--fold", 1, "--set", "steps=3", "--out", out
    assert "Use --resume to resume it, --overwrite to replace it" in typed(*again, code=1)
    (out / "fold-1" / "chosen.json").touch()
    assert "Not comparable" in typed(*again, "--overwrite")
    assert not (out / "fold-1" / "chosen.json").exists()
    recorded = out / "fold-1" / "results.json"
    refused = typed(recorded, "--out", out, "--overwrite", code=1)
    assert f"{recorded} is needed and lies in {out / 'fold-1'}" in refused
    assert recorded.exists()
    planned = plan(read_recorded(file), [], tmp_path / "b", [f"start={out / 'start'}"])
    assert (planned.starts, planned.changed, list(planned.runs)) == ({}, (), [0, 1])


def test_a_start_with_a_seed_is_trained_for_each_fold(tmp_path):
    recipe = replace(EAGER, start="runs/x")
    file = written(tmp_path / "made.json", recipe, [0.5, 0.6], start_command=f"{START} --set seed=0")
    planned = plan(read_recorded(file), [0, 7], tmp_path)
    assert {place.name: start.seed for place, start in planned.starts.items()} == {"start-0": 0, "start-7": 7}
    assert planned.runs[7][1].start == str(tmp_path / "start-7")


@pytest.mark.parametrize(
    ("recorded", "now", "words"),
    [
        # 90 +- 4.303 * 1 * sqrt(4 / 3)
        ({0: 89.0, 1: 90.0, 2: 91.0}, 94.9, "Within the interval"),
        ({0: 89.0, 1: 90.0, 2: 91.0}, 95.0, "Outside, in fold 0, the interval"),
        ({0: 89.0}, 89.0, "The file records one fold"),
    ],
)
def test_a_new_number_is_compared_with_the_recorded_folds(recorded, now, words):
    planned = Planned(Recorded(Path("x.json"), EAGER, recorded), {}, {}, ())
    found = compared(planned, {0: now})
    assert in_words(found)[-1].startswith(words)
    if len(recorded) > 1:
        assert in_words(found)[-1].endswith("85.03 to 94.97 %.")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "is not JSON"),
        ("[]", "records no run that can be repeated: it holds list"),
        ('{"runs": [], "device": "x"}', "it holds runs, device. Expected recipe and folds"),
        ('{"recipe": {}, "algorithms": {}}', "A comparison is repeated with debiaspl compare"),
        ('{"recipe": {"name": "x"}}', "it lacks 'accuracy'"),
        ('{"recipe": {"name": "x"}, "folds": []}', "it has no folds"),
        ('{"recipe": {"name": "x"}, "folds": [{"accuracy": 93}]}', "expected a number from 0 to 1"),
        ('{"recipe": {"name": "x", "colour": 1}, "folds": []}', "a recipe has no colour"),
        ('{"recipe": {"name": "x"}, "accuracy": 0.5, "start_command": "rm -r x"}', "its start_command is 'rm -r x'"),
    ],
)
def test_a_file_that_records_no_run_is_refused_in_words(text, words, tmp_path):
    (tmp_path / "made.json").write_text(text)
    assert words in " ".join(typed(tmp_path / "made.json", "--out", tmp_path / "out", code=1).split())
    assert not (tmp_path / "out").exists()


def test_files_of_somebody_else_are_not_executed(tmp_path):
    own = tmp_path / "mine.py"
    own.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    recipe = EAGER.to_json() | {"algorithm": {"name": f"{own}:Mine", "settings": {}}}
    (tmp_path / "made.json").write_text(json.dumps({"recipe": recipe, "accuracy": 0.5}))
    assert "If you trust it: --set algorithm=" in typed(tmp_path / "made.json", "--out", tmp_path / "out", code=1)
    assert not (tmp_path / "ran").exists()


def test_what_makes_no_sense_is_refused(tmp_path):
    file = written(tmp_path / "made.json", EAGER, [0.5])
    assert "Choose it with --fold" in typed(file, "--set", "seed=1", code=1)
    assert "records no start command" in typed(file, "--set-start", "steps=1", code=1)
    assert "cannot be read" in typed(tmp_path / "none.json", code=1)
    missing = written(tmp_path / "missing.json", replace(EAGER, start="runs/none"), [0.5])
    assert "the start runs/none was not found" in typed(missing, code=1)


def test_every_result_file_of_the_repository_can_be_repeated(tmp_path):
    files = [file for name in ("gain", "start", "long-tail") for file in (ROOT / "results" / name).glob("*/*.json")]
    assert len(files) >= 27
    for file in files:
        planned = plan(read_recorded(file), [], tmp_path)
        assert planned.changed == ()
        assert all((recipe.start == "") == (not planned.starts) for _, recipe in planned.runs.values()), file

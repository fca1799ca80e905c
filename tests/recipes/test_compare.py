"""The matrix: what is planned before anything trains, that it resumes run by run, and what the command prints."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from debiaspl.algorithms import ALGORITHMS
from debiaspl.cli import app
from debiaspl.recipes import compare as compare_module
from debiaspl.recipes.compare import DECIDED, SETTINGS, SHORT, base_recipe, built_in, compare, plan
from debiaspl.recipes.lengths import DIGITS as ONE_LABEL
from debiaspl.training import Choice, RunError
from tests.data.photos import write_folder
from tests.forked import command
from tests.recipes.test_demo import without_timing

SMALL = ["steps=3", "width=4", "labeled_batch=8", "unlabeled_batch=16"]
SETTINGS_TYPED = [text for setting in SMALL for text in ("--set", setting)]

LONGER = [*SMALL[1:], "steps=90", "threshold=0.2", "log_every=10", "checkpoint_every=20"]

PROGRAM = f"""
import sys
from pathlib import Path
from debiaspl.recipes.compare import base_recipe, compare, plan
from debiaspl.training import Interrupted
if __name__ == "__main__":
    corrections = ["none", "own", "debiaser"]
    planned = plan(base_recipe(None), ["supervised", "fixmatch"], corrections, range(2), {LONGER})
    try:
        compare(planned, Path(sys.argv[1]), resume=True)
    except Interrupted as stop:
        print(stop)
        sys.exit(128 + stop.signal)
"""


def longer() -> Any:
    """What the program plans: six runs, long enough to be killed in."""
    return plan(base_recipe(None), ["supervised", "fixmatch"], ["none", "own", "debiaser"], range(2), LONGER)


def planned(*arguments: Any, settings: list[str] | None = None, seeds: int = 2) -> Any:
    return plan(ONE_LABEL, *arguments, range(seeds), settings or [])


def start(program: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(program), str(out)], text=True, stdout=subprocess.PIPE)


def wait_for_lines(out: Path, lines: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if sum(len(log.read_text().splitlines()) for log in out.glob("*/log.jsonl")) >= lines:
            return
        time.sleep(0.01)
    raise AssertionError("the matrix ended, or logged nothing for two minutes")


@pytest.mark.slow(seconds=30)
def test_a_killed_and_then_stopped_matrix_resumes_to_the_same_results(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    compare(longer(), tmp_path / "whole", workers=1)  # in this process
    assert len(list((tmp_path / "whole").glob("*-seed*"))) == 6, "own, here none, is not trained again"

    out = tmp_path / "again"
    with start(program, out) as killed:
        wait_for_lines(out, 24, killed)
        killed.kill()
    ended = {path: path.stat().st_mtime_ns for path in out.glob("*/results.json")}
    with start(program, out) as stopped:
        wait_for_lines(out, 35, stopped)
        stopped.send_signal(signal.SIGTERM)
        said, _ = stopped.communicate(timeout=60)
    assert stopped.returncode == 128 + signal.SIGTERM
    assert "what was trained is saved" in said
    assert not (out / "results.json").exists()

    compare(longer(), out, resume=True, workers=1)
    assert numbers(out) == numbers(tmp_path / "whole")
    assert ended
    assert {path: path.stat().st_mtime_ns for path in ended} == ended, "runs that had ended were not repeated"


def numbers(folder: Path) -> dict[str, Any]:
    return without_times(without_timing((folder / "results.json").read_text()))


def without_times(written: dict[str, Any]) -> dict[str, Any]:
    for row in written["algorithms"].values():
        for cell in row["corrections"].values():
            del cell["seconds"]
    return written


def test_every_algorithm_is_planned_with_and_without_the_debiaser():
    made = planned(list(ALGORITHMS), ["none", "debiaser"])
    assert list(made.cells) == list(ALGORITHMS)
    assert list(made.cells["fixmatch"]) == ["none", "debiaser"]
    assert list(made.cells["supervised"]) == ["none"]
    assert "Supervised makes no pseudo-labels" in made.refused["supervised"]["debiaser"]
    jobs = made.jobs(Path("out"))
    assert jobs["fixmatch", "debiaser", 1].out == Path("out/fixmatch-debiaser-seed1")
    assert jobs["fixmatch", "debiaser", 1].recipe.seed == 1
    assert len({job.out for job in jobs.values()}) == len(jobs)


def test_the_columns_differ_in_nothing_but_the_correction():
    made = planned(["pseudolabel", "fixmatch"], ["none", "debiaser"])
    for row in made.cells.values():
        plain = [{**recipe.to_json(), "correction": ""} for recipe in row.values()]
        assert plain[0] == plain[1]
    assert made.cells["fixmatch"]["debiaser"] == ONE_LABEL
    assert made.changes()["fixmatch"] == {
        "none": {"correction": {"name": "none", "settings": {}}},
        "debiaser": {},
    }


def test_own_has_the_settings_of_its_paper_and_runs_of_its_own():
    made = planned(["softmatch", "fixmatch"], ["own", "alignment"])
    own, plain = made.cells["softmatch"].values()
    assert (own.correction.settings["target"], own.algorithm.settings["corrected_labels"]) == ("uniform", False)
    assert (dict(plain.correction.settings), plain.algorithm.settings.get("corrected_labels", True)) == ({}, True)
    jobs = made.jobs(Path("out"))
    assert jobs["softmatch", "own", 0].out == Path("out/softmatch-own-seed0")
    assert jobs["softmatch", "alignment", 0].out == Path("out/softmatch-alignment-seed0")
    typed = planned(["softmatch"], ["own"], settings=["target=labels"])
    assert typed.cells["softmatch"]["own"].correction.settings["target"] == "labels", "what is typed counts"
    assert built_in("softmatch") == "alignment target=uniform corrected_labels=false"


@pytest.mark.parametrize("name", dict.fromkeys([*ALGORITHMS, *SETTINGS]))
def test_settings_for_short_runs_are_known_and_the_same_for_every_correction(name):
    assert name in ALGORITHMS
    own = ALGORITHMS[name].own_correction
    recipe = ONE_LABEL.changed(algorithm=name, correction=own)
    recipe = recipe.changed(**ALGORITHMS[name].own_settings)
    settings = SETTINGS.get(name, {})
    for key in settings:
        assert recipe.owner(key) in ("recipe", "algorithm", "strong"), key
        assert key not in {*DECIDED, "name", "steps", "protocol", "network"}, key
    made = planned([name], ["own"])
    assert made.cells[name]["own"] == recipe.changed(**settings)


def test_settings_for_short_runs_stay_with_the_short_recipes(monkeypatch):
    monkeypatch.setitem(SETTINGS, "fixmatch", {"threshold": 0.5})
    assert set(SHORT) == {"digits-10", "digits-lt20-10pct"}
    assert planned(["fixmatch"], ["none"]).cells["fixmatch"]["none"].algorithm.settings["threshold"] == 0.5
    typed = planned(["fixmatch"], ["none"], settings=["threshold=0.6"])
    assert typed.cells["fixmatch"]["none"].algorithm.settings["threshold"] == 0.6
    other = plan(
        base_recipe("eurosat-40", None, ["data=digits"]), ["fixmatch"], ["none"], range(1), ["labeled_batch=8"]
    )
    assert other.cells["fixmatch"]["none"].algorithm.settings["threshold"] == 0.95


@pytest.mark.parametrize("turned", [False, True])
def test_a_part_that_is_set_has_its_settings_in_every_pair(turned):
    typed = ["network=small", "network.width=6", "strong=cropcolor", "grey_share=0.4"]
    cells = planned(["fixmatch", "comatch"], ["none"], settings=typed[::-1] if turned else typed).cells
    for row in cells.values():
        assert row["none"].network == Choice("small", {"width": 6})
        assert row["none"].strong.settings == {"grey_share": 0.4}


def test_settings_reach_the_pairs_that_have_them():
    made = planned(["supervised", "fixmatch"], ["none", "debiaser"], settings=["strength=0.25", "threshold=0.9"])
    assert made.cells["fixmatch"]["debiaser"].correction.settings == {"strength": 0.25}
    assert made.cells["fixmatch"]["none"].algorithm.settings["threshold"] == 0.9
    assert made.cells["supervised"]["none"].algorithm.settings == {}
    assert made.notes() == [
        "strength=0.25 was not used by supervised: no such setting.",
        "threshold=0.9 was not used by supervised: no such setting.",
    ]


MINE = """
from debiaspl.algorithms import FixMatch
class Mine(FixMatch):
    def __init__(self, correction=None, momentum=0.5):
        super().__init__(correction)
"""


@pytest.mark.parametrize(
    ("algorithms", "corrections", "settings", "message"),
    [
        (["fixmatsch"], ["none"], [], "Did you mean fixmatch?"),
        (["fixmatch"], ["nothing"], [], "'nothing'"),
        (["fixmatch", "fixmatch"], ["none"], [], "--methods is 'fixmatch,fixmatch', expected"),
        (["fixmatch"], ["none", "none"], [], "--corrections is 'none,none', expected"),
        (["fixmatch"], ["none"], ["strenght=1"], "no setting 'strenght'"),
        (["fixmatch"], ["none"], ["strength=1"], "no setting 'strength': it is a setting of correction=debiaser"),
        (["fixmatch"], ["none"], ["strength"], "found 'strength', expected key=value"),
        (["fixmatch"], ["none"], ["seed=4"], "Choose it with --seeds, not with --set"),
        (["fixmatch"], ["none"], ["correction=none"], "Choose it with --methods, not with --set"),
        (["fixmatch", "supervised"], ["none", "debiaser"], ["strength=-1"], "strength is -1, expected a number >= 0"),
        (["supervised"], ["debiaser"], [], "nothing can be trained. Supervised makes no pseudo-labels"),
        (["fixmatch", "mine.py:Mine"], ["none", "debiaser"], ["momentum=0.9"], "algorithm.momentum"),
    ],
)
def test_mistakes_are_found_before_anything_is_planned(
    tmp_path, monkeypatch, algorithms, corrections, settings, message
):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    with pytest.raises(ValueError, match=re.escape(message)):
        planned(algorithms, corrections, settings=settings)


def test_a_list_of_methods_is_compared_with_the_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    methods = ["fixmatch", "debiaspl", "remixmatch+debiaser", "mine.py:Mine+debiaser", "supervised+debiaser"]
    made = planned(methods, None, settings=["strength=1"])
    jobs = made.jobs(Path("out"))
    assert [job.out.name for (_, _, seed), job in jobs.items() if seed == 0] == [
        *("fixmatch-seed0", "debiaspl-seed0", "remixmatch+debiaser-seed0", "mine.py-Mine+debiaser-seed0"),
    ]
    assert [job.recipe.correction.settings.get("strength") for job in list(jobs.values())[::2]] == [None, 1, 1, 1]
    ended = [{"accuracy": 0.1 * place, "worst_recall": 0.0, "timing": {"seconds": 1.0}} for place in range(8)]
    monkeypatch.setattr(compare_module, "train_all", lambda jobs, *rest: ended)
    table = compare(made, tmp_path / "out")
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [row[0] for row in table.whole()[1:]] == methods[:4]
    assert written["baseline"] == "fixmatch"
    assert written["methods"]["debiaspl"]["difference"]["mean"] == pytest.approx(0.2)
    supervised, strength = made.notes()
    assert supervised.startswith("supervised+debiaser: Supervised makes no pseudo-labels")
    assert strength == "strength=1 was not used by fixmatch: no such setting."


def test_the_base_is_a_recipe_on_data():
    assert base_recipe(None) == base_recipe(None, None, ["data=digits"]) == ONE_LABEL
    assert base_recipe("cifar10-40").data == "cifar10"
    assert base_recipe("eurosat-40", None, ["data=photos/"]).data == "photos/"
    with pytest.raises(ValueError, match="data=eurosat needs a --recipe"):
        base_recipe(None, None, ["data=eurosat"])


def test_a_folder_of_another_matrix_is_refused_before_anything_trains(tmp_path, monkeypatch):
    trained = []
    monkeypatch.setattr(compare_module, "train_all", lambda jobs, *rest: trained.append(jobs))
    (tmp_path / "photo.jpg").write_text("mine")
    made = planned(["fixmatch"], ["none"])
    for arguments in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(RunError, match="contains no compare"):
            compare(made, tmp_path, **arguments)

    out = tmp_path / "out"
    last = list(made.jobs(out).values())[-1]
    last.out.mkdir(parents=True)
    (out / ".compare").touch()
    with pytest.raises(RunError, match="already contains a compare"):
        compare(made, out)
    was = last.recipe.changed(per_class=2, flip=True).to_json()
    (last.out / "config.json").write_text(json.dumps({"recipe": was}))
    with pytest.raises(RunError, match=r"per_class: 2 then, 1 now; flip: true then, false now"):
        compare(made, out, resume=True)
    assert trained == []


@pytest.mark.slow
def test_the_command_prints_the_matrix_and_writes_its_numbers(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    arguments = ["--methods", "supervised, mine.py:Mine", "--corrections", "none,debiaser", "--seeds", "2"]
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
    said = command("compare", *SETTINGS_TYPED, *arguments, folder=tmp_path, environment=environment)
    assert said.returncode == 0, said.stderr
    assert "2 algorithms x 2 corrections x 2 seeds, 6 runs" in said.stdout
    assert re.search(r"^supervised +none +\d+\.\d ± \d+\.\d +\d+ +\d+ *$", said.stdout, re.MULTILINE)
    assert re.search(r"^mine.py:Mine +debiaser +\d.*\d of 2 +\d+ *$", said.stdout, re.MULTILINE)
    assert said.stdout.count("Supervised makes no pseudo-labels") == 1
    out = tmp_path / "runs" / "compare-digits"
    assert (out / "mine.py-Mine-debiaser-seed1" / "results.json").exists()

    monkeypatch.chdir(tmp_path)
    written = json.loads((out / "results.json").read_text())
    resumed = CliRunner().invoke(app, ["compare", *SETTINGS_TYPED, *arguments, "--resume"])
    assert resumed.exit_code == 0, resumed.output
    accuracy = written["algorithms"]["mine.py:Mine"]["corrections"]["none"]["accuracy"]["mean"]
    assert f"{100 * accuracy:.1f}" in (out / "table.md").read_text()
    assert written["recipe"]["name"] == "digits-10"

    again = CliRunner().invoke(app, ["compare", *SETTINGS_TYPED, *arguments])
    assert again.exit_code == 1
    assert "already contains a compare" in again.stderr


@pytest.mark.slow
def test_a_folder_of_photos_is_compared_on(tmp_path):
    write_folder(tmp_path / "photos")
    base = base_recipe("digits-10", None, [f"data={tmp_path / 'photos'}"])
    matrix = compare(plan(base, ["fixmatch"], ["debiaser"], range(1), SMALL), tmp_path / "out", workers=1)
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert matrix.whole()[1][0] == "fixmatch"
    assert written["recipe"]["data"] == str(tmp_path / "photos")

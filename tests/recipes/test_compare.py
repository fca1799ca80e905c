"""Comparisons: what is planned before anything trains, that they resume run by run, and what the command prints."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from debiaspl.algorithms import ALGORITHMS
from debiaspl.cli import app
from debiaspl.cli.compare import _for_runs
from debiaspl.recipes import compare as compare_module
from debiaspl.recipes.compare import DECIDED, SETTINGS, SHORT, base_recipe, compare, plan
from debiaspl.recipes.lengths import DIGITS as ONE_LABEL
from debiaspl.training import Choice, RunError, parallel
from tests.data.photos import write_folder
from tests.forked import command
from tests.recipes.test_demo import without_timing

SMALL = ["steps=3", "width=4", "labeled_batch=8", "unlabeled_batch=16"]
SETTINGS_TYPED = [text for setting in SMALL for text in ("--set", setting)]

LONGER = [*SMALL[1:], "steps=90", "threshold=0.2", "log_every=10", "checkpoint_every=20"]

PROGRAM = """
import sys
from pathlib import Path
from debiaspl.recipes.compare import compare
from debiaspl.training import Interrupted
from tests.recipes.test_compare import longer
if __name__ == "__main__":
    try:
        compare(longer(), Path(sys.argv[1]), resume=True)
    except Interrupted as stop:
        print(stop)
        sys.exit(128 + stop.signal)
"""


def longer() -> Any:
    """Six runs, long enough to be killed in."""
    return plan(base_recipe(None), ["supervised", "fixmatch", "debiaspl"], range(2), LONGER)


def planned(*methods: str, settings: list[str] | None = None) -> Any:
    return plan(replace(ONE_LABEL, paper=94.6), methods, range(2), settings or [])


def start(program: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(program), str(out)], text=True, stdout=subprocess.PIPE)


def wait_for_lines(out: Path, lines: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if sum(len(log.read_text().splitlines()) for log in out.glob("*/log.jsonl")) >= lines:
            return
        time.sleep(0.01)
    raise AssertionError("it ended, or logged nothing for two minutes")


@pytest.mark.slow(seconds=30)
def test_a_killed_and_then_stopped_comparison_resumes_to_the_same_results(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    compare(longer(), tmp_path / "whole", workers=1)  # in this process
    assert len(list((tmp_path / "whole").glob("*-seed*"))) == 6

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
    written = [without_timing((folder / "results.json").read_text()) for folder in (out, tmp_path / "whole")]
    assert written[0] == written[1]
    assert ended
    assert {path: path.stat().st_mtime_ns for path in ended} == ended, "runs that had ended were not repeated"


@pytest.mark.parametrize("name", ["supervised", *dict.fromkeys([*ALGORITHMS, *SETTINGS])])
def test_settings_for_short_runs_are_known_and_the_same_for_every_correction(name):
    assert name in ALGORITHMS
    own, settings = ALGORITHMS[name].own_correction, SETTINGS.get(name, {})
    recipe = ONE_LABEL.changed(algorithm=name, correction=own).changed(**ALGORITHMS[name].own_settings)
    for key in settings:
        assert recipe.owner(key) in ("recipe", "algorithm", "strong"), key
        assert key not in {*DECIDED, "name", "steps", "protocol", "network"}, key
    assert planned(name).methods[name] == recipe.changed(**settings)


def test_settings_for_short_runs_stay_with_the_short_recipes(monkeypatch):
    monkeypatch.setitem(SETTINGS, "fixmatch", {"threshold": 0.5})
    assert set(SHORT) == {"digits-10", "digits-lt20-10pct"}
    other = plan(base_recipe("eurosat-40", None, ["data=digits"]), ["fixmatch"], range(1), ["labeled_batch=8"])
    for made, threshold in (
        (planned("fixmatch"), 0.5),
        (planned("fixmatch", settings=["threshold=0.6"]), 0.6),
        (other, 0.95),
    ):
        assert made.methods["fixmatch"].algorithm.settings["threshold"] == threshold


@pytest.mark.parametrize("turned", [False, True])
def test_a_part_that_is_set_has_its_settings_in_every_method(turned):
    typed = ["network=small", "network.width=6", "strong=cropcolor", "grey_share=0.4"]
    for recipe in planned("fixmatch", "comatch", settings=typed[::-1] if turned else typed).methods.values():
        assert recipe.network == Choice("small", {"width": 6})
        assert recipe.strong.settings == {"grey_share": 0.4}


MINE = """
from debiaspl.algorithms import FixMatch
class Mine(FixMatch):
    def __init__(self, correction=None, momentum=0.5):
        super().__init__(correction)
"""


@pytest.mark.parametrize(
    ("methods", "settings", "message"),
    [
        (["fixmatsch"], [], "Did you mean fixmatch?"),
        (["fixmatch+nothing"], [], "'nothing'"),
        (["fixmatch", "fixmatch"], [], "--methods is 'fixmatch,fixmatch', expected"),
        (["fixmatch"], ["strenght=1"], "no setting 'strenght'"),
        (["fixmatch"], ["strength=1"], "no setting 'strength': it is a setting of correction=debiaser"),
        (["fixmatch"], ["strength"], "found 'strength', expected key=value"),
        (["fixmatch"], ["seed=4"], "Choose it with --seeds, not with --set"),
        (["fixmatch"], ["correction=none"], "Choose it with --methods, not with --set"),
        (["fixmatch", "debiaspl"], ["strength=-1"], "strength is -1"),
        (["fixmatch", "supervised+debiaser"], [], "Supervised makes no pseudo-labels"),
        (["debiaspl", "mine.py:Mine"], ["momentum=0.9"], "algorithm.momentum"),
    ],
)
def test_mistakes_are_found_before_anything_is_planned(tmp_path, monkeypatch, methods, settings, message):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    with pytest.raises(ValueError, match=re.escape(message)):
        planned(*methods, settings=settings)


def test_what_a_gpu_alone_computes_in_can_be_planned():
    assert planned("fixmatch", settings=["precision=bfloat16"]).methods["fixmatch"].precision == "bfloat16"


def test_methods_are_compared_with_the_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    methods = ["fixmatch", "debiaspl", "remixmatch+debiaser", "mine.py:Mine+debiaser"]
    made = planned(*methods, settings=["strength=1"])
    jobs = [job for runs in made.jobs(Path("out")).values() for job in runs]
    assert [job.out.name for job in jobs[::2]] == [
        *("fixmatch-seed0", "debiaspl-seed0", "remixmatch+debiaser-seed0", "mine.py-Mine+debiaser-seed0"),
    ]
    assert [(job.recipe.seed, job.recipe.paper) for job in jobs] == [(0, None), (1, None)] * 4
    assert [job.recipe.correction.settings.get("strength") for job in jobs[::2]] == [None, 1, 1, 1]
    ended = [{"accuracy": 0.1 * place, "worst_recall": 0.0, "timing": {"seconds": 1.0}} for place in range(8)]
    monkeypatch.setattr(compare_module, "train_all", lambda jobs, *rest: ended)
    table = compare(made, tmp_path / "out")
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [row[0] for row in table.whole()[1:]] == methods
    assert (written["baseline"], written["changes"]["debiaspl"]) == ("fixmatch", {"correction.strength": 1.0})
    assert written["methods"]["debiaspl"]["difference"]["mean"] == pytest.approx(0.2)
    assert made.notes() == ["strength=1 was not used by fixmatch: no such setting."]


def test_the_base_is_a_recipe_on_data():
    assert base_recipe(None) == base_recipe(None, None, ["data=digits"]) == ONE_LABEL
    assert base_recipe("cifar10-40").data == "cifar10"
    assert base_recipe("eurosat-40", None, ["data=photos/"]).data == "photos/"
    with pytest.raises(ValueError, match="data=eurosat needs a --recipe"):
        base_recipe(None, None, ["data=eurosat"])


def test_a_folder_of_another_comparison_is_refused_before_anything_trains(tmp_path, monkeypatch):
    trained = []
    monkeypatch.setattr(compare_module, "train_all", lambda jobs, *rest: trained.append(jobs))
    (tmp_path / "photo.jpg").write_text("mine")
    made = planned("fixmatch")
    for arguments in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(RunError, match="contains no compare"):
            compare(made, tmp_path, **arguments)

    out = tmp_path / "out"
    last = made.jobs(out)["fixmatch"][-1]
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
def test_the_command_prints_the_table_and_writes_its_numbers(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    arguments = ["--methods", "Supervised, mine.py:Mine", "--seeds", "2"]
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
    said = command("compare", *SETTINGS_TYPED, *arguments, folder=tmp_path, environment=environment)
    assert said.returncode == 0, said.stderr
    assert "2 methods x 2 seeds, 4 runs" in said.stdout
    assert re.search(r"^supervised +\d+\.\d ± \d+\.\d +\d+ +-", said.stdout, re.MULTILINE)
    assert re.search(r"^mine.py:Mine +\d+\.\d ± \d+\.\d +[+-]\d.*\) +\d+ ", said.stdout, re.MULTILINE)
    out = tmp_path / "runs" / "compare-digits"
    assert (out / "mine.py-Mine-seed1" / "results.json").exists()

    monkeypatch.chdir(tmp_path)
    written = json.loads((out / "results.json").read_text())
    resumed = CliRunner().invoke(app, ["compare", *SETTINGS_TYPED, *arguments, "--resume"])
    assert resumed.exit_code == 0, resumed.output
    accuracy = written["methods"]["mine.py:Mine"]["accuracy"]["mean"]
    assert f"{100 * accuracy:.1f}" in (out / "table.md").read_text()
    assert written["recipe"]["name"] == "digits-10"

    again = CliRunner().invoke(app, ["compare", *SETTINGS_TYPED, *arguments])
    assert again.exit_code == 1
    assert "already contains a compare" in again.stderr


@pytest.mark.slow
def test_a_folder_of_photos_is_compared_on(tmp_path):
    write_folder(tmp_path / "photos")
    base = base_recipe("digits-10", None, [f"data={tmp_path / 'photos'}"])
    table = compare(plan(base, ["debiaspl"], range(1), SMALL), tmp_path / "out", workers=1)
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert table.whole()[1][0] == "debiaspl"
    assert written["recipe"]["data"] == str(tmp_path / "photos")


@pytest.mark.parametrize(("gpu", "typed", "device"), [(True, (), "cuda"), (True, ("cpu",), "cpu"), (False, (), "cpu")])
def test_the_runs_are_on_the_chosen_device_or_on_a_gpu_if_there_is_one(gpu, typed, device, tmp_path, monkeypatch):
    jobs = []

    def stop(planned, *rest):
        jobs.extend(job for runs in planned.jobs(tmp_path).values() for job in runs)
        raise NotImplementedError("no training")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(compare_module, "compare", stop)
    options = [part for one in typed for part in ("--device", one)]
    arguments = ["compare", "--methods", "fixmatch,debiaspl", "--seeds", "1", "--out", str(tmp_path / "out"), *options]
    with pytest.raises(NotImplementedError):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert [job.device for job in jobs] == [device] * 2
    monkeypatch.setattr(parallel, "usable_cores", lambda: 2)
    assert [parallel.at_a_time(jobs, workers) for workers in (None, 2, 9)] == [2 if device == "cpu" else 1, 2, 2]
    monkeypatch.setattr(parallel, "train_as", lambda options, recipe, out: options)
    options = parallel._work(jobs[0])
    assert (options.device, options.shown) == (device, False)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_comparison_on_a_gpu(tmp_path):
    typed = ["compare", "--methods", "fixmatch,debiaspl", "--seeds", "1", "--set", "steps=20", "--device", "cuda"]
    ran = CliRunner().invoke(app, [*typed, "--out", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    runs = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("*-seed0/results.json")]
    assert [run["timing"]["device"] for run in runs] == [torch.cuda.get_device_name()] * 2


@pytest.mark.parametrize(("frozen", "device"), [(True, "cpu"), (False, "cuda")])
def test_what_is_planned_decides_whether_features_are_frozen(frozen, device, monkeypatch):
    """And not the recipe before --set, which may freeze an encoder or train it."""
    planned = plan(ONE_LABEL, ["fixmatch"], [0])
    monkeypatch.setattr("debiaspl.features.run.is_frozen", lambda recipe: frozen and recipe != ONE_LABEL)
    assert _for_runs(planned, "cuda", None) == device
    if frozen:
        with pytest.raises(ValueError, match=r"--device is cuda, .*Use --device cpu"):
            _for_runs(planned, "cuda", "cuda")


def test_a_comparison_keeps_to_its_device(tmp_path, monkeypatch):
    def stop(*rest):
        raise NotImplementedError("no training")

    monkeypatch.setattr(compare_module, "train_all", stop)
    planned = plan(ONE_LABEL, ["supervised"], [0], SMALL)
    for resume in (False, True):
        with pytest.raises(NotImplementedError):
            compare(planned, tmp_path / "out", resume=resume)
    with pytest.raises(RunError, match="Use --device cpu"):
        compare(replace(planned, device="cuda"), tmp_path / "out", resume=True)


def test_a_device_that_is_not_there_is_refused_as_in_train():
    commands = ["compare"], ["train", "--recipe", "digits-10"]
    refused = [CliRunner().invoke(app, [*typed, "--device", "gpu"]) for typed in commands]
    assert {one.exit_code for one in refused} == {1}
    assert len({one.stderr for one in refused}) == 1

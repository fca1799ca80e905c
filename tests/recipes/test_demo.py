"""The demo: what it prints, that it resumes to the same numbers, and that its figures can be trusted."""

import json
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from debiaspl.recipes import demo as demo_module
from debiaspl.recipes.demo import METHODS, demo, jobs_of
from debiaspl.recipes.digits import LONG_TAIL, ONE_LABEL
from debiaspl.report import compare
from debiaspl.training import RunError

PROGRAM = """
import sys
from pathlib import Path
from debiaspl.recipes import demo as module
from debiaspl.training import Interrupted
settings = ["steps=90", "width=4", "labeled_batch=8", "unlabeled_batch=16", "threshold=0.2", "log_every=10"]
module.ONE_LABEL = module.ONE_LABEL.with_settings([*settings, "checkpoint_every=20"])
if __name__ == "__main__":
    try:
        module.demo(Path(sys.argv[1]), seeds=range(2), resume=True)
    except Interrupted as stop:
        print(stop)
        sys.exit(128 + stop.signal)
"""


def numbers(folder: Path) -> dict[str, Any]:
    values = json.loads((folder / "results.json").read_text())
    del values["timing"]
    return values


def start(program: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(program), str(out)], text=True, stdout=subprocess.PIPE)


def finish(program: Path, out: Path) -> None:
    subprocess.run([sys.executable, str(program), str(out)], check=True)


def wait_for_lines(out: Path, lines: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if sum(len(log.read_text().splitlines()) for log in out.glob("*/log.jsonl")) >= lines:
            return
        time.sleep(0.01)
    raise AssertionError("the demo ended, or logged nothing for two minutes")


def test_a_stopped_demo_resumes_to_the_same_results(tmp_path):
    """A matrix, which is trained in the same way, is killed: test_compare.py."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    finish(program, tmp_path / "whole")

    with start(program, tmp_path / "demo") as stopped:
        wait_for_lines(tmp_path / "demo", 15, stopped)
        stopped.send_signal(signal.SIGTERM)
        said, _ = stopped.communicate(timeout=60)
    assert stopped.returncode == 128 + signal.SIGTERM
    assert "what was trained is saved" in said
    assert not (tmp_path / "demo" / "results.json").exists()

    finish(program, tmp_path / "demo")
    assert numbers(tmp_path / "demo") == numbers(tmp_path / "whole")
    assert (tmp_path / "demo" / "comparison.png").stat().st_size > 5000


@pytest.mark.parametrize("recipe", [ONE_LABEL, LONG_TAIL])
def test_the_methods_differ_in_nothing_but_the_method(recipe):
    jobs = jobs_of(recipe, range(3), Path("out"))
    assert list(jobs) == ["supervised", "FixMatch", "DebiasPL"]
    plain = [
        {**job.recipe.to_json(), "name": "", "algorithm": "", "correction": ""}
        for runs in jobs.values()
        for job in runs
    ]
    for method in range(3):
        assert plain[3 * method : 3 * method + 3] == plain[:3]
    assert jobs["FixMatch"][0].recipe.algorithm == jobs["DebiasPL"][0].recipe.algorithm
    assert jobs["FixMatch"][0].recipe.correction.name == "none"
    assert jobs["DebiasPL"][0].recipe.correction.name == "debiaser"


def test_the_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "photo.jpg").write_text("mine")
    for arguments in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(RunError, match="holds no demo"):
            demo(tmp_path, range(1), **arguments)
    assert (tmp_path / "photo.jpg").read_text() == "mine"


def test_an_existing_demo_is_gone_on_with_or_begun_anew_only_when_asked(tmp_path, monkeypatch):
    (tmp_path / ".demo").touch()
    (tmp_path / "old").touch()
    with pytest.raises(RunError, match=r"already holds a demo. Go on with it: --resume. Begin it anew: --overwrite"):
        demo(tmp_path, range(1))

    def stop(*arguments):
        raise RuntimeError("far enough")

    monkeypatch.setattr(demo_module, "train_all", stop)
    with pytest.raises(RuntimeError, match="far enough"):
        demo(tmp_path, range(1), resume=True)
    assert (tmp_path / "old").exists()
    with pytest.raises(RuntimeError, match="far enough"):
        demo(tmp_path, range(1), overwrite=True)
    assert not (tmp_path / "old").exists()


def results(accuracy: float, worst: float, imbalance: float | None = None) -> dict[str, Any]:
    pseudo = {"pseudo_imbalance": imbalance, "pseudo_labels": [4, 2]} if imbalance else {}
    return {"accuracy": accuracy, "worst_recall": worst, **pseudo}


def test_the_table_shows_means_spread_and_paired_differences():
    runs = {
        "supervised": [results(0.5, 0.1), results(0.6, 0.3)],
        "FixMatch": [results(0.7, 0.2, 9.0), results(0.8, 0.4, 5.0)],
        "DebiasPL": [results(0.9, 0.6, 2.0), results(0.75, 0.8, 3.0)],
    }
    comparison = compare([0, 1], runs, "FixMatch")
    deviation = statistics.stdev([0.2, -0.05])
    assert comparison.rows() == [
        ("supervised", "55.0 ± 7.1", "-20.0 ± 0.0", "0 of 2", "20", "-"),
        ("FixMatch", "75.0 ± 7.1", "", "", "30", "7.0"),
        ("DebiasPL", "82.5 ± 10.6", f"+7.5 ± {100 * deviation:.1f}", "1 of 2", "70", "2.5"),
    ]
    assert comparison.to_json()["methods"]["DebiasPL"]["accuracy"]["per_seed"] == [0.9, 0.75]
    assert comparison.to_markdown().count("\n") == 5
    with pytest.raises(ValueError, match="DebiasPL has 1 results, expected one for each of 2"):
        compare([0, 1], {**runs, "DebiasPL": runs["DebiasPL"][:1]}, "FixMatch")


def test_supervised_is_always_beside_the_others():
    assert next(iter(METHODS)) == "supervised"

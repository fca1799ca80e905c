"""``--resume`` where there is nothing to go on with: it is said, before anything trains, and a new run begins."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.cli.resuming import warn_of_new_run
from debiaspl.recipes import recipe
from debiaspl.recipes.compare import Plan
from debiaspl.training import Run

TINY = "--recipe", "digits-10", "--set", "steps=4", "--device", "cpu"
TRAINED = "error: training was reached"


@pytest.fixture(autouse=True)
def nothing_trains(monkeypatch, tmp_path):
    """What would train stops with a message instead; the folder of the runs is the current one."""

    def stop(*_, **__):
        raise ValueError(TRAINED.removeprefix("error: "))

    for place in (
        "training.loop.train_as",
        "recipes.demo.demo",
        "recipes.compare.compare",
        "zeroshot.experiment.Experiment.run",
    ):
        monkeypatch.setattr(f"debiaspl.{place}", stop)
    monkeypatch.setattr(
        "debiaspl.recipes.compare.plan", lambda base, *_: Plan(base, {}, {}, (), (), ())
    )  # takes seconds
    monkeypatch.chdir(tmp_path)


def said(*arguments):
    """Standard error, without what the stub says."""
    ran = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    lines = ran.stderr.splitlines()
    assert lines.pop() == TRAINED, ran.output
    return "\n".join(lines)


def begin(folder, *settings, ended=False):
    run = Run(Path(folder))
    with run.begin(recipe("digits-10").with_settings(["steps=4", *settings])):
        pass
    if ended:
        run.results_path.write_text(json.dumps({"accuracy": 1}))


def test_a_mistyped_folder_is_named_and_so_is_the_run_that_was_meant():
    begin("runs/frist-ended", ended=True)
    begin("runs/frist-other-settings", "seed=3")
    Path("runs/frist-no-run").mkdir()
    Path("runs/frist-no-run/config.json").write_text("[1]")
    Path("runs/frist-empty").mkdir()
    Path("runs/frist.txt").touch()
    nothing = "--resume found no run in runs/frist, so a new one starts there."
    assert said("train", *TINY, "--out", "runs/frist", "--resume") == nothing
    begin("runs/first")
    meant = (
        " runs/first holds a run of this recipe that has not ended. If you meant that one, stop this and use: --out "
    )
    assert said("train", *TINY, "--out", "runs/frist", "--resume") == f"{nothing}{meant}runs/first"
    begin("runs/a run")  # of two, the one whose name is more alike
    assert said("train", *TINY, "--out", "runs/frist", "--resume") == f"{nothing}{meant}runs/first"
    assert said("train", *TINY, "--out", "runs/a urn", "--resume").endswith("--out 'runs/a run'")
    assert said("train", *TINY, "--out", "frist", "--resume") == nothing.replace("runs/", "")
    Path("runs/hidden/.lock").parent.mkdir()
    Path("runs/hidden/.lock").touch()
    assert "found no run in runs/hidden" in said("train", *TINY, "--out", "runs/hidden", "--resume")


def test_it_is_silent_where_a_run_is_or_where_none_was_asked_for(tmp_path, capsys, monkeypatch):
    begin("runs/first")
    assert said("train", *TINY, "--out", "runs/first", "--resume") == ""
    assert said("train", *TINY, "--out", "runs/new") == ""
    # What is refused is refused by the training itself, with other words.
    Path("runs/full").mkdir()
    Path("runs/full/mine.txt").touch()
    assert said("train", *TINY, "--out", "runs/full", "--resume") == ""
    assert said("train", *TINY, "--out", "runs/full/mine.txt", "--resume") == ""
    assert not Path("runs/new").exists()

    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, heard in (("1", ""), ("0", "--resume found no run in runs/new, so a new one starts there.\n")):
        monkeypatch.setenv("RANK", rank)
        warn_of_new_run(Path("runs/new"), recipe("digits-10"))
        assert capsys.readouterr().err == heard


def test_what_others_keep_to_themselves_beside_it_is_no_error(monkeypatch):
    """Folders that are closed to us, and files that are no run's."""
    Path("runs/damaged").mkdir(parents=True)
    Path("runs/damaged/config.json").write_text('{"recipe": []}')
    Path("runs/closed").mkdir()
    exists = Path.exists

    def refused(path, **settings):
        if "closed" in path.parts[:-1]:
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path, **settings)

    monkeypatch.setattr(Path, "exists", refused)
    for command in (("train", *TINY), ("demo",)):
        assert said(*command, "--out", "runs/new", "--resume").endswith("in runs/new, so a new one starts there.")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("demo",), "demo"),
        (("compare", "--json"), "matrix"),
        (
            ("zeroshot", "photos", "--classes", "a,b", "--model", "t.npz", "--student", "small", "--device", "cpu"),
            "zero-shot run",
        ),
    ],
)
def test_experiments_of_several_runs_say_it_too(command, words):
    import numpy as np
    from PIL import Image

    Path("photos").mkdir()
    Image.new("RGB", (9, 9)).save("photos/a.png")
    np.savez("t.npz", probabilities=np.array([[0.5, 0.5]]))
    nothing = f"--resume found no {words} in runs/new, so a new one starts there."
    assert said(*command, "--out", "runs/new", "--resume") == nothing
    for name, files in {"old": ("results.json",), "stopped": (), "other": None}.items():
        Path("runs", name).mkdir(parents=True)
        for file in () if files is None else (f".{command[0]}", *files):
            Path("runs", name, file).touch()
    assert said(*command, "--out", "runs/new", "--resume") == (
        f"{nothing} runs/stopped holds a {words} that has not ended. If you meant that one, stop this and use: "
        "--out runs/stopped"
    )
    for place in ("runs/stopped", "runs", "t.npz"):  # the last two are refused, with other words
        assert said(*command, "--out", place, "--resume") == ""
    assert said(*command, "--out", "runs/new") == ""

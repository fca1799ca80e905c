"""One rule for what a command writes: what exists stays, unless --overwrite is given."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.recipes import recipe
from debiaspl.recipes.folder import overwrite_run
from debiaspl.training import Run, RunError

PREDICTIONS = "file_name,label,truth\n" + "".join(f"{number}.jpg,{'ab'[number % 2]},a\n" for number in range(8))


def audit(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def begun(folder, *settings):
    run = Run(Path(folder))
    with run.begin(recipe("digits-10").with_settings(settings)):
        pass
    (run.folder / "old").touch()
    return run.folder


def test_a_page_replaces_nothing_without_overwrite(tmp_path):
    source, out = tmp_path / "found.csv", tmp_path / "kept"
    source.write_text(PREDICTIONS)
    out.write_text("mine")
    ran = audit(source, "--out", out)
    assert ran.exit_code == 1
    assert ran.stderr == f"error: {out} exists already. Use --overwrite to replace it, or choose another name.\n"
    assert out.read_text() == "mine"
    assert audit(source, "--out", source).exit_code == 1
    assert source.read_text() == PREDICTIONS
    assert "is a folder" in audit(source, "--out", tmp_path, "--overwrite").stderr
    assert audit(source, "--out", out, "--overwrite").exit_code == 0
    assert out.read_text().startswith("<!doctype html>")


def test_the_report_of_a_run_is_written_anew_unless_it_is_somebody_s_own(tmp_path):
    (tmp_path / "report.html").write_text("mine")
    ran = CliRunner().invoke(app, ["report", "one", "two"])
    assert "report.html exists already and is not a debiaspl page. Use --overwrite to replace it" in ran.stderr
    assert (tmp_path / "report.html").read_text() == "mine"
    (tmp_path / "report.html").write_text('<meta name="generator" content="debiaspl">')
    assert "report.html" not in CliRunner().invoke(app, ["report", "one", "two"]).stderr
    ran = CliRunner().invoke(app, ["report", "one", "--out", "report.html"])
    assert "report.html exists already. Use --overwrite to replace it" in ran.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("train", "--recipe", "digits-10", "--set", "steps=4"),
        ("pretrain", "digits", "--set", "steps=4"),
    ],
    ids=["train", "pretrain"],
)
def test_a_run_is_replaced_with_overwrite_alone(command, monkeypatch):
    """Whatever its settings were."""
    seen = []

    def stop(options, chosen, place, *_):
        seen.append((Path(place) / "old").exists())
        raise ValueError("training was reached")

    monkeypatch.setattr("debiaspl.training.loop.train_as", stop)
    begun("run", "seed=9")
    typed = [*command, "--device", "cpu", "--out", "run"]
    assert CliRunner().invoke(app, [*typed, "--overwrite"]).stderr == "error: training was reached\n"
    assert seen == [False]
    both = CliRunner().invoke(app, [*typed, "--overwrite", "--resume"])
    assert "--resume continues a run and --overwrite replaces it" in both.stderr


def test_only_runs_are_removed_and_none_that_is_needed(monkeypatch):
    chosen = recipe("digits-10")
    Path("model").mkdir()
    Path("model/config.json").write_text(json.dumps({"architectures": ["ViT"]}))  # a model of the hub, not a run
    with pytest.raises(RunError, match="damaged or of another version"):
        overwrite_run(Path("model"), chosen)
    assert Path("model/config.json").exists()
    folder = begun("run")
    with pytest.raises(RunError, match="run is needed and lies in run, which --overwrite would remove"):
        overwrite_run(folder, chosen.with_settings(["algorithm=distill", "teacher_run=run"]))
    with Run(folder).begin(chosen), pytest.raises(RunError, match="another process is training in run"):
        overwrite_run(folder, chosen)
    assert (folder / "old").exists()
    overwrite_run(folder, chosen)
    assert not folder.exists()
    overwrite_run(folder, chosen)  # nothing to do


def test_several_processes_overwrite_nothing(monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    from debiaspl.cli.options import refuse_both

    with pytest.raises(ValueError, match="torchrun may restart it"):
        refuse_both(resume=False, overwrite=True)


def test_packed_images_are_replaced_by_packed_images_alone(tmp_path):
    from tests.data.photos import jpeg, patch

    for name in ("a", "b"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "photos" / name / "1.jpg").write_bytes(jpeg(patch(0, 1)))
    (tmp_path / "mine").mkdir()

    def pack(*more):
        return CliRunner().invoke(app, ["data", "pack", "photos", *more])

    assert "mine exists already and is not a packed folder" in pack("mine", "--overwrite").stderr
    assert pack("packed").exit_code == 0
    assert "packed already contains packed images. Use --overwrite to replace it" in pack("packed").stderr
    assert pack("packed", "--overwrite").stdout == "2 images of 24 x 24 are in packed\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "packed", "photos"]

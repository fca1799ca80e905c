"""One rule for what a command writes: what exists stays, unless --overwrite is given."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.recipes import recipe
from debiaspl.recipes.folder import experiment_folder, overwriting, overwriting_run
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
    (run.folder / "log.jsonl").write_text("old")
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


def test_a_page_never_replaces_what_it_is_made_of(tmp_path):
    source = tmp_path / "found.csv"
    source.write_text(PREDICTIONS)
    ran = audit(source, "--out", source, "--overwrite")
    assert "found.csv is also what this command reads" in ran.stderr
    assert source.read_text() == PREDICTIONS


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
        seen.append(Path(place).exists())
        if len(seen) == 2:
            begun(place, "seed=7")
        raise ValueError("training was reached")

    monkeypatch.setattr("debiaspl.training.loop.train_as", stop)
    begun("run", "seed=9")
    typed = [*command, "--device", "cpu", "--out", "run"]
    assert CliRunner().invoke(app, [*typed, "--overwrite"]).stderr == "error: training was reached\n"
    assert Run(Path("run")).recipe().seed == 9, "a run that does not begin replaces nothing"
    assert CliRunner().invoke(app, [*typed, "--overwrite"]).stderr == "error: training was reached\n"
    assert seen == [False, False]
    assert Run(Path("run")).recipe().seed == 7
    assert [path.name for path in Path().iterdir()] == ["run"]
    both = CliRunner().invoke(app, [*typed, "--overwrite", "--resume"])
    assert "--resume continues a run and --overwrite replaces it" in both.stderr


def refused(folder, chosen, message):
    """And nothing is changed."""
    before = sorted(folder.rglob("*"))
    with pytest.raises(RunError, match=message), overwriting_run(folder, chosen):
        pytest.fail("it was not refused")
    assert sorted(folder.rglob("*")) == before


def test_only_runs_are_replaced_and_none_that_is_needed():
    chosen = recipe("digits-10")
    Path("model").mkdir()
    Path("model/config.json").write_text(json.dumps({"architectures": ["ViT"]}))  # a model of the hub, not a run
    refused(Path("model"), chosen, "damaged or of another version")
    folder = begun("run")
    needed = "is needed and lies in run, which --overwrite would remove"
    refused(folder, chosen.with_settings(["algorithm=distill", "teacher_run=run"]), f"run {needed}")
    refused(folder, replace(chosen, start="run/log.jsonl"), f"run/log.jsonl {needed}")
    with (
        pytest.raises(RunError, match=r"log\.jsonl is needed"),
        overwriting(folder, [{"name": "run/log.jsonl:Mine"}]),
    ):
        pytest.fail("it was not refused")
    with Run(folder).begin(chosen):
        refused(folder, chosen, "another process is training in run")
    Path("link").symlink_to("run")
    refused(Path("link"), chosen, "link is a link")
    with overwriting_run(folder, chosen):
        begun("run", "seed=4")
    assert Run(folder).recipe().seed == 4
    with overwriting_run(Path("none"), chosen):
        pass
    assert not Path("none").exists()


@pytest.mark.parametrize("own", ["notes.txt", ".git/config", "other/config.json", "supervised/notes.txt"])
def test_a_folder_with_files_of_others_is_not_replaced(own):
    folder = begun("run")
    (folder / own).parent.mkdir(exist_ok=True)
    (folder / own).write_text("mine")
    refused(folder, recipe("digits-10"), f"run also contains {own.replace('/config', '').removesuffix('.json')}")


def test_the_current_folder_is_not_replaced(monkeypatch):
    begun("run")
    monkeypatch.chdir("run")
    refused(Path(), recipe("digits-10"), "is the current folder")


def test_an_experiment_is_replaced_once_the_new_one_has_begun():
    def experiment(number, fail_before=False):
        with experiment_folder(Path("many"), "compare", False, overwrite=number > 1, inputs=[Path("many/photos")]):
            if fail_before:
                raise ValueError("not begun")
            begun(f"many/fixmatch-none-seed{number}")

    experiment(1)
    with pytest.raises(ValueError, match="not begun"):
        experiment(2, fail_before=True)
    assert Path("many/fixmatch-none-seed1/config.json").exists()
    with (
        Run(Path("many/fixmatch-none-seed1")).begin(recipe("digits-10")),
        pytest.raises(RunError, match="is training in"),
    ):
        experiment(2)
    Path("many/photos").mkdir()
    with pytest.raises(RunError, match="many also contains photos, which debiaspl has not written"):
        experiment(2)
    Path("many/photos").rmdir()
    experiment(2)
    assert not Path("many/fixmatch-none-seed1").exists()
    assert sorted(path.name for path in Path().iterdir()) == ["many"]


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
    (tmp_path / "mine" / "index.json").write_text("{}")
    (tmp_path / "mine" / "thesis.txt").write_text("mine")

    def pack(*more):
        return CliRunner().invoke(app, ["data", "pack", "photos", *more])

    assert "mine exists already and is not a packed folder, or contains other" in pack("mine", "--overwrite").stderr
    assert (tmp_path / "mine" / "thesis.txt").exists()
    assert pack("packed").exit_code == 0
    assert "packed already contains packed images. Use --overwrite to replace it" in pack("packed").stderr
    assert pack("packed", "--overwrite").stdout == "2 images of 24 x 24 are in packed\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "packed", "photos"]

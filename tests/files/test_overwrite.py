"""--overwrite: the earlier folder is NAME.old until the new one is complete; only what a run writes is removed."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from debiaspl.data.manifest import StoredFor, add_to_manifest, alone_in
from debiaspl.encoders.feature_folder import FeatureFolder
from debiaspl.files import FileError, overwrite, replacing
from debiaspl.recipes import recipe
from debiaspl.recipes.compare import experiment_folder
from debiaspl.training import Run, RunError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def names(folder: Path | str = ".") -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def run(folder: str, mark: str, complete: bool = True) -> Path:
    """A run folder whose log holds the mark."""
    path = Path(folder)
    with Run(path).begin(recipe("digits-10")):
        pass
    (path / "log.jsonl").write_text(mark)
    (path / "checkpoint").mkdir()
    (path / "checkpoint" / "step-000000004.safetensors").touch()
    if complete:
        (path / "results.json").touch()
    return path


def marks() -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in Path().glob("*/log.jsonl")}


def replaced(mark: str, complete: bool = True, stop: BaseException | None = None) -> None:
    with replacing(Path("run"), True):
        assert not Path("run").exists()
        run("run", mark, complete)
        if stop is not None:
            raise stop


def test_the_old_run_goes_when_the_new_one_is_complete(caplog):
    run("run", "first")
    replaced("second")
    assert marks() == {"run": "second"}
    assert names() == ["run"]
    assert "kept in run.old" in caplog.text


def test_the_runs_below_a_run_go_with_it():
    run("run", "first")
    for name in ("supervised", "frozen", "start", "check/debiaspl-fold0"):
        run(f"run/{name}", "below")
    replaced("second")
    assert names() == ["run"]


def test_an_interrupted_one_leaves_the_old_run_and_the_next_keeps_it(caplog):
    run("run", "first")
    for mark in ("second", "third"):
        with pytest.raises(KeyboardInterrupt):
            replaced(mark, complete=False, stop=KeyboardInterrupt())
        assert marks() == {"run": mark, "run.old": "first"}
        assert "not complete: the earlier one is kept in run.old" in caplog.text
    replaced("fourth")
    assert marks() == {"run": "fourth"}


def test_a_resumed_one_that_completes_removes_the_old_run_too():
    run("run", "first")
    replaced("second", complete=False)
    with replacing(Path("run"), False):
        (Path("run") / "results.json").touch()
    assert marks() == {"run": "second"}


def test_a_folder_of_the_user_with_this_name_stays():
    kept = {"run.old": "the user's copy", "run.old-kept": "renamed, to keep it"}
    for name, mark in kept.items():
        run(name, mark)
    Path("run.old-kept", overwrite.NOTE).touch()
    run("run", "first")
    with replacing(Path("run"), True):
        assert marks() == {**kept, "run.old2": "first"}
        run("run", "second")
    assert marks() == {"run": "second", **kept}


@pytest.mark.parametrize(
    "own", ["labels.csv", "notes.txt", ".git/config", "checkpoint/mine.txt", ".features/mine", "fold-1/x", "start"]
)
def test_what_a_run_did_not_write_stays(own, caplog):
    run("run", "first")
    Path("run", own).parent.mkdir(exist_ok=True)
    Path("run", own).write_text("mine")
    replaced("second")
    assert [path for path in Path("run.old").rglob("*") if path.is_file()] == [Path("run.old", own)]
    assert f"run did not write what it also contains: {own.split('/')[0]}" in caplog.text
    replaced("third")
    assert Path("run.old", own).read_text() == "mine"


def test_links_are_not_followed():
    folder = run("run", "first")
    Path("mine").mkdir()
    Path("mine/step-1.safetensors").touch()
    (folder / ".features").symlink_to(Path("mine").resolve())
    replaced("second")
    assert names("run.old") == [".features"]
    assert names("mine") == ["step-1.safetensors"]


def test_a_zeroshot_folder_has_a_table_of_its_own():
    Path("run/debiaspl").mkdir(parents=True)
    for name in (".zeroshot", "labels.csv", "zeroshot.csv", "results.json", "debiaspl/config.json"):
        Path("run", name).touch()
    replaced("second")
    assert names() == ["run"]


def refused(folder: str, inputs: object, message: str) -> None:
    before = sorted(Path().rglob("*"))
    with pytest.raises((FileError, RunError), match=message), replacing(Path(folder), True, [inputs]):
        pytest.fail("it was not refused")
    assert sorted(Path().rglob("*")) == before


def test_what_is_needed_or_in_use_is_not_renamed(monkeypatch):
    chosen = recipe("digits-10")
    folder = run("run", "first")
    refused("run", replace(chosen, start="run/log.jsonl").to_json(), "log.jsonl is needed")
    refused("run", {"name": "run/log.jsonl:Mine"}, "log.jsonl is needed")
    with Run(folder).begin(chosen):
        refused("run", None, "another process")
    Path("link").symlink_to("run")
    refused("link", None, "is a link")
    monkeypatch.chdir("run")
    refused(".", None, "current folder")


def test_the_model_of_another_program_is_not_a_run():
    Path("model").mkdir()
    Path("model/config.json").write_text(json.dumps({"architectures": ["ViT"]}))
    with pytest.raises(RunError, match="damaged"):
        Run(Path("model")).replacing(recipe("digits-10"), True)
    with Run(Path("none")).replacing(recipe("digits-10"), True):
        assert not Path("none").exists()


def test_an_experiment_is_replaced_with_its_runs():
    for number in (1, 2):
        with experiment_folder(Path("many"), "compare", "cpu", False, overwrite=number > 1):
            run(f"many/fixmatch-none-seed{number}", "x")
            FeatureFolder(Path(f"many/.features/{number:016x}"), "key", 1, StoredFor("x", 8, 8)).describe()
            with alone_in(Path(f"many/.features/{number:016x}")):
                add_to_manifest(Path(f"many/.features/{number:016x}"), (), ["1.jpg"])
            Path("many/results.json").touch()
    assert names() == ["many"]
    assert names("many") == [".compare", ".features", "fixmatch-none-seed2", "results.json"]


def test_a_folder_that_cannot_be_removed_is_told(monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    run("run", "first")
    monkeypatch.setattr(overwrite.Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(OSError(13, "denied")))
    overwrite.remove_written(Path("run"))
    assert "Remove it by hand" in caplog.text

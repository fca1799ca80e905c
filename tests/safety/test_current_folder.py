"""The current folder is somebody's photos: no Python file that lies in it is ever imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import debiaspl
from debiaspl._processes import leave_current_folder, safe_start
from debiaspl.training.parallel import Job, train_all
from tests.data.photos import write_folder
from tests.training.tiny import TINY, changed

PLANTED = ("multiprocessing", "torch", "numpy", "typer", "rich", "PIL", "safetensors", "concurrent", "csv", "hashlib")
SHORT = ("steps=2", "checkpoint_every=2", "image_size=8", "labeled_batch=4", "unlabeled_batch=4", "network=small")
HOME = Path(debiaspl.__file__).parents[1]


def plant(folder: Path) -> None:
    """Modules that leave a mark when they are imported."""
    folder.mkdir(exist_ok=True)
    for name in PLANTED:
        mark = f"open({str(folder / f'executed-{name}')!r}, 'a').close()\n"
        (folder / f"{name}.py").write_text(f"{mark}raise ImportError('planted')\n")


def executed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("executed-*"))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, "-m", "debiaspl", *arguments]
    return subprocess.run(command, cwd=folder, env=usual | {"PYTHONPATH": f"{HOME}::."}, capture_output=True, text=True)


@pytest.mark.slow
def test_a_photo_folder_executes_nothing_when_it_streams(tmp_path):
    """Though PYTHONPATH names the current folder in two ways, as it easily does by a slip."""
    photos = write_folder(tmp_path / "photos", per_class=6)
    plant(photos)
    (photos / "unlabeled").mkdir()
    settings = [word for each in (*SHORT, "stream=true") for word in ("--set", each)]
    ended = run(
        photos, "train", ".", "--encoder", "none", "--device", "cpu", "--workers", "1", "--out", "../run", *settings
    )
    assert executed(photos) == []
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_nor_when_runs_are_made_side_by_side(tmp_path, monkeypatch):
    """Without the command line, which has left the folder: whoever calls the library starts safe workers too."""
    plant(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    train_all([Job(changed(TINY, "steps=4"), tmp_path / "run")], workers=1)
    assert executed(tmp_path / "here") == []
    assert "PYTHONSAFEPATH" not in os.environ


def test_the_current_folder_leaves_the_path(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    kept = [str(tmp_path), "/usr/lib/python3"]
    monkeypatch.setattr(sys, "path", ["", ".", str(tmp_path / "here"), str(tmp_path / "link"), *kept])
    leave_current_folder()
    assert sys.path == kept
    assert os.environ["PYTHONSAFEPATH"] == "1"


def test_it_stays_where_the_package_itself_comes_from_it(monkeypatch):
    """A checkout is used from its own folder; the processes that are started must find the same package."""
    monkeypatch.chdir(HOME)
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    monkeypatch.setattr(sys, "path", ["", "/usr/lib/python3", str(HOME)])
    leave_current_folder()
    assert sys.path == [str(HOME), "/usr/lib/python3"]


def test_what_was_set_before_is_set_again(monkeypatch):
    monkeypatch.setenv("PYTHONSAFEPATH", "2")
    with safe_start():
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ["PYTHONSAFEPATH"] == "2"

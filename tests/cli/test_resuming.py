"""``--resume`` where there is nothing to resume: a line says that a new run starts."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.cli.terminal import note_new_run


@pytest.mark.parametrize(
    ("command", "mark", "place"),
    [
        ("train --recipe digits-10 --device cpu", "config.json", "training.loop.train_as"),
        ("demo", ".demo", "recipes.demo.demo"),
    ],
)
def test_a_new_run_is_announced_once(command, mark, place, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise ValueError("training was reached")

    monkeypatch.setattr(f"debiaspl.{place}", stop)
    monkeypatch.chdir(tmp_path)

    def said(*more: str) -> str:
        ran = CliRunner().invoke(app, [*command.split(), "--out", "runs/frist", *more])
        return ran.stderr.removesuffix("error: training was reached\n")

    assert said("--resume") == "--resume found no run in runs/frist, so a new one starts there.\n"
    assert said() == ""
    Path("runs/frist").mkdir(parents=True)
    Path("runs/frist", mark).touch()
    if command == "demo":
        assert said("--resume") == ""


def test_the_first_rank_speaks_for_all(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, count in (("1", 0), ("0", 1)):
        monkeypatch.setenv("RANK", rank)
        note_new_run(True, tmp_path / "new")
        assert capsys.readouterr().err.count("found no run") == count

"""One rule for what a command writes: what exists stays, unless --overwrite is given."""

from pathlib import Path

import pytest

from debiaspl.recipes import recipe
from debiaspl.training import Run
from debiaspl.training.settings import parse_settings
from tests.typed import debiaspl

PREDICTIONS = "file_name,label,truth\n" + "".join(f"{number}.jpg,{'ab'[number % 2]},a\n" for number in range(8))


def audit(*arguments):
    return debiaspl("audit", *arguments)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def begun(folder, *settings):
    run = Run(Path(folder))
    with run.begin(parse_settings(recipe("digits-10"), settings)):
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
    assert "is also what this command reads" in audit(source, "--out", source, "--overwrite").stderr
    assert source.read_text() == PREDICTIONS
    assert "is a folder" in audit(source, "--out", tmp_path, "--overwrite").stderr
    assert audit(source, "--out", out, "--overwrite").exit_code == 0
    assert out.read_text().startswith("<!doctype html>")


def test_the_report_of_a_run_is_written_anew_unless_it_is_somebody_s_own(tmp_path):
    (tmp_path / "report.html").write_text("mine")
    ran = debiaspl("report", "one", "two")
    assert "is not a debiaspl page" in ran.stderr
    assert (tmp_path / "report.html").read_text() == "mine"
    (tmp_path / "report.html").write_text('<meta name="generator" content="debiaspl">')
    assert "report.html" not in debiaspl("report", "one", "two").stderr
    ran = debiaspl("report", "one", "--out", "report.html")
    assert "report.html exists already. Use --overwrite to replace it" in ran.stderr


def test_a_run_is_replaced_with_overwrite_alone(monkeypatch):
    """Whatever its settings were."""
    seen = []

    def stop(options, chosen, place, *_, **__):
        seen.append(Path(place).exists())
        if len(seen) == 2:
            begun(place, "seed=7")
        raise ValueError("training was reached")

    monkeypatch.setattr("debiaspl.training.loop.train_as", stop)
    begun("run", "seed=9")
    typed = ["train", "--recipe", "digits-10", "--set", "steps=4", "--device", "cpu", "--out", "run"]
    assert debiaspl(*typed, "--overwrite").stderr == "error: training was reached\n"
    assert Run(Path("run.old")).recipe().seed == 9
    assert debiaspl(*typed, "--overwrite").stderr == "error: training was reached\n"
    assert seen == [False, False]
    assert Run(Path("run")).recipe().seed == 7
    assert sorted(path.name for path in Path().iterdir()) == ["run", "run.old"]
    both = debiaspl(*typed, "--overwrite", "--resume")
    assert "--resume continues a run and --overwrite replaces it" in both.stderr


def test_several_processes_overwrite_nothing(monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    from debiaspl.cli.options import refuse_both

    with pytest.raises(ValueError, match="torchrun may restart it"):
        refuse_both(resume=False, overwrite=True)

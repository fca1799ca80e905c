"""A file in a folder that is not there: a slip in a name makes no folder, whatever the command."""

import pytest

from tests.typed import debiaspl

COMMANDS = [
    ("predict run photos --out labels.csv --skipped FILE", "s.csv"),
    ("export run FILE", "model.onnx"),
    ("next run photos --out FILE", "next.csv"),
    ("label photos --classes a,b --no-browser --out FILE", "labels.csv"),
    ("audit run --out FILE", "audit.html"),
    ("report run --out FILE", "report.html"),
]


@pytest.mark.parametrize(("typed", "file"), COMMANDS, ids=[command.rpartition(" ")[0] for command, _ in COMMANDS])
def test_a_folder_that_is_not_there_is_not_made(typed, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.safetensors").touch()

    def said(place):
        return debiaspl(*(place if word == "FILE" else word for word in typed.split()))

    ran = said(f"my typo/deep/{file}")
    assert ran.exit_code == 1
    told = "there is no folder my typo/deep. Fix the name, or create it: mkdir -p 'my typo/deep'"
    assert ran.stderr == f"error: my typo/deep/{file} cannot be written: {told}\n"
    assert "there is no folder typo. Fix the name" in said(f"typo/{file}").stderr
    (tmp_path / "some.txt").touch()
    assert "there is no folder some.txt." in said(f"some.txt/{file}").stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["model.safetensors", "photos", "run", "some.txt"]


def test_a_run_to_audit_that_does_not_exist_is_told(tmp_path):
    ran = debiaspl("audit", str(tmp_path / "typo"))
    assert ran.stderr == f"error: {tmp_path / 'typo'}: No such file or directory\n"


@pytest.mark.parametrize("typed", ["predict run photos", "next run photos", "export run", "evaluate run photos"])
def test_a_missing_run_is_told_before_a_file_that_exists(typed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "next.csv").touch()
    (tmp_path / "next.onnx").touch()
    written = ["next.onnx"] if "export" in typed else ["--out", "next.csv"]
    ran = debiaspl(*typed.split(), *written)
    assert ran.stderr == "error: run does not exist. Expected the folder of a run made by debiaspl train.\n"
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.safetensors").touch()
    if "photos" in typed:
        assert "error: photos does not exist." in debiaspl(*typed.split(), *written).stderr

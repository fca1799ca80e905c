"""A page takes the place of an older page and of nothing else: not of predictions, weights or somebody's own page."""

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app

PREDICTIONS = "file_name,label,truth\n" + "".join(f"{number}.jpg,{'ab'[number % 2]},a\n" for number in range(8))


def audit(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


@pytest.mark.parametrize("mine", [PREDICTIONS.encode(), b"<!doctype html>\n<p>my own page</p>\n", b"\x00\xff weights"])
def test_a_file_that_is_no_page_of_ours_is_kept(mine, tmp_path):
    source, out = tmp_path / "found.csv", tmp_path / "kept"
    source.write_text(PREDICTIONS)
    out.write_bytes(mine)
    ran = audit(source, "--out", out)
    assert ran.exit_code == 1
    assert ran.stderr == (
        f"error: {out} exists and is no page of debiaspl, which alone a new page replaces. "
        "Give another name, or remove the file.\n"
    )
    assert out.read_bytes() == mine
    assert audit(source, "--out", source).exit_code == 1
    assert source.read_text() == PREDICTIONS
    assert "is a folder" in audit(source, "--out", tmp_path).stderr


def test_an_older_page_is_replaced(tmp_path):
    source, out = tmp_path / "found.csv", tmp_path / "page.html"
    source.write_text(PREDICTIONS)
    assert audit(source, "--out", out).exit_code == 0
    first = out.read_text()
    source.write_text(PREDICTIONS.replace("0.jpg,a", "0.jpg,b"))
    assert audit(source, "--out", out).exit_code == 0
    assert out.read_text() != first
    out.write_text("")  # made by mktemp, or touch
    assert audit(source, "--out", out).exit_code == 0


def test_a_report_too_keeps_what_is_no_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.html").write_text("mine")
    ran = CliRunner().invoke(app, ["report", "one", "two"])
    assert "report.html exists and is no page of debiaspl" in ran.stderr
    assert (tmp_path / "report.html").read_text() == "mine"

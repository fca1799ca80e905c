"""Names of files and classes come from anywhere: none of them moves the cursor, or is markup."""

import io

import pytest

from debiaspl.cli.terminal import print_table, say
from debiaspl.training import train
from debiaspl.training.log import ProgressLine
from tests.data.photos import write_folder
from tests.training.tiny import TINY
from tests.typed import debiaspl, done

ESCAPE = "\x1b]0;owned\x07"
NASTY = f"{ESCAPE}\x1b[2J\u202e[/bold]"
MARK = "\N{REPLACEMENT CHARACTER}"


def harmless(text: str) -> bool:
    return all(letter.isprintable() or letter == "\n" for letter in text)


def test_lines_stay_and_all_else_becomes_a_mark(capsys):
    say(f"a\n{NASTY}b")
    assert capsys.readouterr().out == f"a\n{MARK}]0;owned{MARK}{MARK}[2J{MARK}[/bold]b\n"


def test_no_markup_acts_in_a_table(capsys):
    print_table([NASTY, "[red]h"], [[NASTY, "[/x]"]])
    shown = capsys.readouterr().out
    assert harmless(shown)
    assert shown.count("[/bold]") == 2
    assert "[red]h" in shown


def test_a_packed_folder_of_nasty_names_is_harmless(tmp_path):
    write_folder(tmp_path / "photos", 2)
    for number in range(2):
        (tmp_path / "photos" / "china" / f"{ESCAPE}\n{number}.jpg").write_bytes(b"no image")
    said = debiaspl("data", "pack", tmp_path / "photos", tmp_path / f"{ESCAPE}packed")
    assert said.exit_code == 0
    assert harmless(said.stdout)
    assert harmless(said.stderr)
    assert len(said.stderr.splitlines()) == 3


def test_a_report_of_nasty_names_is_harmless(tmp_path):
    train(TINY, tmp_path / f"{ESCAPE}one")
    said = debiaspl("report", tmp_path / f"{ESCAPE}one")
    assert said.exit_code == 0
    assert harmless(said.stdout)


def test_an_error_with_a_nasty_name_is_harmless(tmp_path):
    said = debiaspl("audit", tmp_path / f"{ESCAPE}.csv")
    assert said.exit_code == 1
    assert harmless(said.stderr)


def test_the_progress_line_is_harmless():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    ProgressLine(ESCAPE, 0, 10, stream=shown).show(1, {"losses": {}})
    assert "\x1b]0" not in shown.getvalue()


@pytest.mark.slow
def test_a_folder_named_like_markup_holds_a_comparison(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = ("--methods", "supervised", "--seeds", 1, "--set", "steps=2")
    assert "results.json are in x[/bold]" in done("compare", *few, "--out", "x[/bold]")

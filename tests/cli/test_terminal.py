"""What a user sees: long lines broken between words, tables that lose nothing, a progress bar that goes."""

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import typer
from rich.cells import cell_len

from debiaspl.cli.terminal import break_warnings, plain_errors, print_table, progress_bar, say
from debiaspl.training.log import ProgressLine

SENTENCE = "Each of 6 labels was predicted by one of 3 models that did not learn from it, so the numbers are honest."


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def terminal(columns: int = 40) -> Iterator[Terminal]:
    """A terminal as standard output and error."""
    shown = Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("TERM", "xterm")
        patch.setattr("sys.stdout", shown)
        patch.setattr("sys.stderr", shown)
        yield shown


def test_a_long_line_is_broken_between_words():
    with terminal() as shown:
        say(SENTENCE)
        with pytest.raises(typer.Exit), plain_errors():
            raise ValueError(SENTENCE)
        ProgressLine("run", 0, 10, stream=shown).tell(f"warning: {SENTENCE}")
        break_warnings()
        assert logging.lastResort is not None
        logging.lastResort.handle(logging.makeLogRecord({"msg": f"first\n{SENTENCE}", "levelno": logging.WARNING}))
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 40
    words = " ".join(lines)
    assert words == f"{SENTENCE} error: {SENTENCE} warning: {SENTENCE} first {SENTENCE}"


def test_what_a_user_copies_is_not_broken():
    command = "debiaspl train 'my photos' --set steps=4 --resume"
    path = "/home/somebody/pictures/of/birds/runs/zeroshot/predictions.csv"
    with terminal() as shown:
        say(f"Stopped and saved at step 4. Resume with: {command}")
        say(f"  {command}")
        say(f"Labels of every photo are in {path}")
    lines = shown.getvalue().splitlines()
    assert lines[:4] == ["Stopped and saved at step 4. Resume", "with:", f"  {command}", f"  {command}"]
    assert lines[-1] == path


def test_what_goes_to_a_file_or_a_program_is_not_broken(capsys):
    with terminal() as shown:
        say(json.dumps({"text": SENTENCE}), as_is=True)  # on a terminal too
    assert json.loads(shown.getvalue()) == {"text": SENTENCE}
    say(SENTENCE)
    assert capsys.readouterr().out == f"{SENTENCE}\n"


@pytest.mark.parametrize("width", [46, 60, 90])
def test_a_table_loses_nothing_on_a_narrow_terminal(width):
    rows = [("DebiasPL, labels + teacher.npz", "100.0", "abcdefghijklmnop" * 3), ("teacher alone", "50.0", "6 to 51")]
    with terminal(width) as shown:
        print_table(("on labels that it did not learn from", "accuracy %", "letters"), rows)
    text = re.sub(r"\x1b\[[\d;]*m", "", shown.getvalue())
    assert "…" not in text
    assert max(map(cell_len, text.splitlines())) <= width
    assert (text.count("j"), text.count("k")) == (3, 3)  # which that column alone has


def test_a_progress_line_leaves_room_for_what_a_stop_prints(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    shown = Terminal()
    line = ProgressLine("digits-10", 0, 4000, stream=shown, part="run 4 of 9")
    line.show(800, {"losses": {"labeled": 0.001, "unlabeled": 0.01}})
    last = re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", shown.getvalue()).split("\r")[-1]
    assert cell_len(f"{last}^C") < 50
    assert last.endswith("left, run 4 of 9")


def test_one_of_several_processes_shows_no_progress_line_but_its_warnings():
    shown = Terminal()
    line = ProgressLine("run", 0, 10, stream=shown, shown=False)
    line.show(1, {"losses": {"labeled": 1.0}})
    assert shown.getvalue() == ""
    line.tell("warning: collapsed")
    assert shown.getvalue() == "warning: collapsed\n"


def test_the_bar_is_gone_when_all_is_done_and_comes_back_for_the_next_work():
    with terminal() as shown, progress_bar("images") as show:
        assert sys.stderr is shown  # nothing is drawn before the first work
        show("looking", 1, 2)
        assert sys.stderr is not shown  # what is printed meanwhile goes above the bar
        show("looking", 2, 2)
        assert sys.stderr is shown
        show("reading", 0, None)
        assert sys.stderr is not shown
    assert "looking" in shown.getvalue()
    assert "reading" in shown.getvalue()

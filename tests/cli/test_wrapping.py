"""Long lines on a terminal: broken between words, with a hanging indent; what a user copies stays in one piece."""

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise

import pytest
import typer
from rich.cells import cell_len
from typer.testing import CliRunner

from debiaspl._wrapped import whole, wrapped
from debiaspl.cli import app
from debiaspl.cli.terminal import filled_table, plain_errors, print_table, say
from debiaspl.training.log import ProgressLine

SENTENCE = "Each of 6 labels was predicted by one of 3 models that did not learn from it, so the numbers are honest."


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def terminal() -> Iterator[Terminal]:
    """A terminal of 40 columns as standard output and error."""
    shown = Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "40")
        patch.setattr("sys.stdout", shown)
        patch.setattr("sys.stderr", shown)
        yield shown


def test_a_long_line_is_broken_between_words_and_its_rest_is_indented():
    with terminal() as shown:
        say(SENTENCE)
    lines = shown.getvalue().splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= 40
    assert all(line.startswith("  ") and line[2] != " " for line in lines[1:])
    assert " ".join(line.strip() for line in lines) == SENTENCE


def test_what_goes_to_a_file_or_a_program_is_not_broken(capsys):
    with terminal() as shown:
        say(json.dumps({"text": SENTENCE}), as_is=True)  # on a terminal too
    assert json.loads(shown.getvalue()) == {"text": SENTENCE}
    say(SENTENCE)
    assert capsys.readouterr().out == f"{SENTENCE}\n"


@pytest.mark.parametrize(
    ("before", "piece", "after"),
    [
        ("Labels of every photo are in ", "/home/somebody/pictures/of/birds/runs/zeroshot/predictions.csv", ""),
        ("Stopped and saved at step 4. Resume with: ", "debiaspl train photos --set steps=4 --resume", ""),
        ("Resume with: ", "debiaspl zeroshot 'my photos' --classes 'owl, grey heron' --resume", ""),
        ("Do not rely on it (", "debiaspl label photos --classes owl,heron", "), then train with --labels again"),
        ("Views are five times slower: ", "--set strong=fixmatch --set flip=true", "."),
        ("A pretrained network is far better: ", "--encoder efficientnet-lite0", "."),
        ("A student of this kind needs it: ", "pip install 'debiaspl[zeroshot]'", ""),
        ("  ", "debiaspl train photos --device cpu --set start=runs/start", ""),
        ("If you meant that one, stop this and use: ", "--out 'runs/my photos'", ""),
        ("The report is ", "my photos/of owls and herons/report.html", "; open it in a browser"),
    ],
)
def test_what_a_user_copies_stays_in_one_piece(before, piece, after):
    kept = whole(piece) if "/of owls" in piece else piece
    lines = wrapped(f"{before}{kept}{after}", 40)
    assert any(piece in line for line in lines), lines
    assert " ".join(line.strip() for line in lines) == f"{before}{piece}{after}".strip()


def test_prose_that_names_a_command_is_still_broken():
    text = "debiaspl compare runs in one process, and --labels, --file-column, --label-column and --encoder do nothing."
    assert max(map(len, wrapped(text, 40))) <= 40


def test_lines_that_fit_and_their_spaces_are_left_alone():
    assert wrapped("a    b", 40) == ["a    b"]
    assert wrapped("", 40) == [""]
    assert wrapped("ab " * 20, 8) == ["ab " * 20]  # too narrow for any text


def test_wide_letters_count_twice():
    lines = wrapped("鷺 " * 20, 24)
    assert max(map(cell_len, lines)) <= 24


@pytest.mark.parametrize("width", [46, 60, 72, 90])
def test_no_number_of_a_table_is_cut_however_narrow_the_terminal(width, monkeypatch):
    rows = [("DebiasPL, labels + teacher.npz", "100.0", "68 to 100"), ("teacher alone", "50.0", "6 to 51")]
    with terminal() as shown:
        monkeypatch.setenv("COLUMNS", str(width))
        print_table(filled_table(("on labels that it did not learn from", "accuracy %", "95 % interval"), rows))
    text = re.sub(r"\x1b\[[\d;]*m", "", shown.getvalue())
    assert {"100.0", "50.0", "accuracy", "interval", "teacher.npz"} <= set(text.split())
    assert "…" not in text
    assert max(map(cell_len, text.splitlines())) <= width


def test_errors_and_warnings_are_broken_too():
    with terminal() as shown:
        with pytest.raises(typer.Exit), plain_errors():
            raise ValueError(SENTENCE)
        ProgressLine("run", 0, 10, stream=shown).tell(f"warning: {SENTENCE}")
        CliRunner().invoke(app, ["recipes", "no such word"])
        assert logging.lastResort is not None
        logging.lastResort.handle(logging.makeLogRecord({"msg": SENTENCE, "levelno": logging.WARNING}))
    lines = shown.getvalue().splitlines()
    assert [line for line in lines if line[0] != " "] == [lines[0], lines[3], lines[6]]
    assert lines[0].startswith("error: ")
    assert max(map(len, lines)) <= 40


@pytest.mark.parametrize("width", [40, 50, 58])
def test_long_tables_lose_nothing_on_a_narrow_terminal(width, monkeypatch):
    """Folded to one column, the letters are all there, in their order."""
    for typed in (["settings", "digits-10"], ["corrections"]):
        with terminal() as shown:
            monkeypatch.setenv("COLUMNS", str(width))
            with suppress(SystemExit):
                app(typed, standalone_mode=False)
        text = re.sub(r"\x1b\[[\d;]*m", "", shown.getvalue())
        assert "…" not in text
        assert max(map(cell_len, text.splitlines())) <= width
        assert "yes" in text or "settings" in typed
    with terminal() as shown:
        monkeypatch.setenv("COLUMNS", str(width))
        print_table(
            filled_table(("one", "two", "three"), [("abcdefghijklmnop" * 2, "qrstuvwxyzabcdefghij" * 2, "0123456789")])
        )
    text = re.sub(r"\x1b\[[\d;]*m", "", shown.getvalue())
    cells = [line.split("│") for line in text.splitlines() if "│" in line]
    assert ["".join(row[place].strip() for row in cells) for place in (1, 2)] == [
        "abcdefghijklmnop" * 2,
        "qrstuvwxyzabcdefghij" * 2,
    ]


def test_a_logged_traceback_keeps_its_lines():
    with terminal() as shown:
        CliRunner().invoke(app, ["recipes", "no such word"])  # sets the form of warnings
        assert logging.lastResort is not None
        logging.lastResort.handle(logging.makeLogRecord({"msg": "first\nsecond", "levelno": logging.WARNING}))
    assert shown.getvalue().splitlines()[-2:] == ["first", "second"]


def test_notes_of_lists_are_broken_once():
    with terminal() as shown, suppress(SystemExit):
        app(["recipes", "lt100"], standalone_mode=False)
    notes = shown.getvalue().split("\n\n")[-3:]
    for note in notes:
        lines = note.strip().splitlines()
        assert max(map(len, lines)) <= 40
        assert all(len(line) + len(below.split()[0]) >= 40 for line, below in pairwise(lines)), note


def test_a_progress_line_leaves_room_for_what_a_stop_prints(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    shown = Terminal()
    line = ProgressLine("digits-10", 0, 4000, stream=shown, part="run 4 of 9 (DebiasPL, labels alone, fold 2)")
    line.show(800, {"losses": {"labeled": 0.001, "unlabeled": 0.01}})
    last = re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", shown.getvalue()).split("\r")[-1]
    assert cell_len(f"{last}^C") < 50
    assert "800/4,000" in last
    assert last.endswith("left of run 4 of 9")


def test_one_of_several_processes_shows_no_progress_line_but_its_warnings():
    shown = Terminal()
    line = ProgressLine("run", 0, 10, stream=shown, shown=False)
    line.show(1, {"losses": {"labeled": 1.0}})
    assert shown.getvalue() == ""
    line.tell("warning: collapsed")
    assert shown.getvalue() == "warning: collapsed\n"

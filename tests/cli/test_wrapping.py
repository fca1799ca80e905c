"""Long lines on a terminal: broken between words, with a hanging indent; what a user copies stays in one piece."""

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

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

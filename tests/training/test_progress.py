"""The progress line of a run."""

import io
import os

import pytest

from debiaspl.training.log import ProgressLine

RECORD = {"losses": {"labeled": 0.5, "unlabeled": 0.25}, "kept": 0.4, "distance": 0.321}
HEALTH = {"rank": 53.4, "spread": 0.5}
ERASED = "\r\x1b[0K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(columns, monkeypatch):
    """One that tells how wide it is."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda descriptor: os.terminal_size((columns, 24)))
    return Terminal()


@pytest.mark.parametrize(
    ("columns", "name", "line"),
    [
        (200, "digits", "digits step 300/600  labeled 0.500  unlabeled 0.250  kept 40%  off shares 32%  0:00 left, 2"),
        (80, "digits", "digits step 300/600  labeled 0.500  unlabeled 0.250  kept 40%  0:00 left, 2"),
        (30, "digits", "0:00 left, 2"),
        (10, "digits", "0:00 left,"),
        (0, "digits", "digits step 300/600  labeled 0.500  unlabeled 0.250  kept 40%  0:00 left, 2"),
        (40, "鳥の写真", "鳥の写真 step 300/600  0:00 left, 2"),
        (37, "鳥の写真", "0:00 left, 2"),
        (50, "[red]b[/] :owl:", "[red]b[/] :owl: step 300/600  0:00 left, 2"),
    ],
)
def test_it_stays_on_one_line_and_shows_names_as_they_are(columns, name, line, monkeypatch):
    """One that went over the edge would not be overwritten by the next. Where no width is told, it is the usual one.
    Three columns stay free, for the ``^C`` of a stop."""
    stream = terminal(columns, monkeypatch)
    progress = ProgressLine(name, 0, 600, stream=stream, part="2")

    def interrupted() -> None:
        with progress:
            progress.show(300, RECORD)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stream.getvalue() == ERASED + line + ERASED, "it is gone, and the cursor was never hidden"


def test_it_keeps_the_latest_measurement_of_the_features(monkeypatch):
    stream = terminal(200, monkeypatch)
    with ProgressLine("digits", 0, 600, stream=stream, unit="image") as line:
        line.show(300, {"losses": {"contrast": 2.0}, "health": HEALTH})
        line.show(310, {"losses": {"contrast": 1.5}})
        line.show(320, {"losses": {}, "health": HEALTH | {"rank": 20.0}})
    first, second, third = stream.getvalue().split(ERASED)[1:4]
    assert first.startswith("digits image 300/600  contrast 2.000  rank 53  spread 0.50  ")
    assert second.startswith("digits image 310/600  contrast 1.500  rank 53  spread 0.50  ")
    assert third.startswith("digits image 320/600  rank 20  spread 0.50  0:0")


def test_a_warning_stays_on_a_terminal_and_elsewhere(monkeypatch):
    record = {"losses": {}, "warning": {"kind": "collapsed", "fact": "All is alike.", "todo": "Try again."}}
    stream, file = terminal(200, monkeypatch), io.StringIO()
    for place in (stream, file):
        with ProgressLine("digits", 0, 6000, stream=place) as line:
            for step, one in ((1200, {"losses": {}}), (1300, record), (1400, {"losses": {}})):
                line.show(step, one)
    said = "warning: digits, step 1,300: All is alike. Try again.\n"
    assert file.getvalue() == said
    before, after = stream.getvalue().split(said)
    assert before.endswith(ERASED)  # in the place of the moving line, which goes on below
    assert "step 1,300/6,000" in after
    assert "warning" not in after


def test_the_remaining_time_is_that_of_all_runs(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("debiaspl.training.log.time.monotonic", lambda: now[0])
    stream = terminal(200, monkeypatch)
    with ProgressLine("digits", 0, 600, stream=stream, part="run 2 of 3", after=900) as line:
        line._started = 0.0
        now[0] = 30.0
        line.show(300, {"losses": {}})
    assert "2:00 left, run 2 of 3" in stream.getvalue()


@pytest.mark.parametrize("where", ["file", "file with colours", "dumb terminal"])
def test_where_a_line_cannot_be_overwritten_there_is_one_a_minute(where, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("debiaspl.training.log.time.monotonic", lambda: now[0])
    stream = terminal(200, monkeypatch) if where == "dumb terminal" else io.StringIO()
    monkeypatch.setenv("TERM", "dumb" if where == "dumb terminal" else "xterm")
    if where == "file with colours":
        monkeypatch.setenv("FORCE_COLOR", "1")
    with ProgressLine("digits", 0, 600, stream=stream) as line:
        line._started = line._printed = 0.0
        for seconds in range(0, 150, 10):
            now[0] = float(seconds)
            line.show(seconds, {"losses": {}})
    first, second = stream.getvalue().splitlines()
    assert (first, second) == ("digits step 60/600  9:00 left", "digits step 120/600  8:00 left")

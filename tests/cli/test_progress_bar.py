"""The progress bar leaves the terminal when its work is done, so that a run can show its own line there."""

import io
import sys

from debiaspl.cli.terminal import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_is_gone_when_all_is_done_and_comes_back_for_the_next_work(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("images") as show:
        assert sys.stderr is shown  # nothing is drawn before the first work
        show("looking", 1, 2)
        assert sys.stderr is not shown  # what is printed meanwhile goes above the bar
        show("looking", 2, 2)
        assert sys.stderr is shown
        show("reading", 0, None)
        assert sys.stderr is not shown
    assert sys.stderr is shown
    assert "looking" in shown.getvalue()
    assert "reading" in shown.getvalue()

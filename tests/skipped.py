"""What was skipped, and why: one line a reason, at the end of the tests."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest


def lines(reasons: Iterable[str]) -> list[str]:
    """The most frequent reason first."""
    counted = Counter(reasons).most_common()
    return [f"{count:,} skipped: {reason}" for reason, count in counted]


def reason(report: Any) -> str:
    """What the test, or the module, said when it was skipped."""
    return str(report.longrepr[2]).removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("skipped")
        for line in lines(reason(report) for report in skipped):
            terminalreporter.write_line(line)

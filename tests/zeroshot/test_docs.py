"""docs/zeroshot.md: its code runs, and its numbers are those that were measured."""

import json
import re
from pathlib import Path

import pytest

from debiaspl.report.intervals import mean_interval
from tests.forked import program

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "zeroshot.md").read_text()


@pytest.mark.slow
def test_the_code_runs_as_printed(tmp_path):
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    ran = program(code, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "tensor" in ran.stdout


@pytest.mark.parametrize("name", ["cifar10", "eurosat"])
def test_the_teacher_is_what_was_measured(name):
    """The tables of students are tests/benchmarks/test_tables.py's business."""
    measured = json.loads((ROOT / "results" / "zeroshot" / f"{name}-frozen.json").read_text())
    assert f"ConSE alone: {100 * measured['ConSE alone']['accuracy']:.1f} %" in PAGE


def test_the_counts_are_what_was_measured():
    measured = json.loads((ROOT / "results" / "zeroshot" / "cifar10-frozen.json").read_text())
    cell = measured["confidence"]["0.95"]
    columns = [measured["ConSE alone"]["counts"], cell["labels"]]
    columns += [cell[method]["runs"][0]["counts"] for method in ("FixMatch", "DebiasPL")]
    for name, *counts in zip(measured["classes"], *columns, strict=True):
        assert f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |" in PAGE


def test_the_gain_in_short_is_what_was_measured():
    cell = json.loads((ROOT / "results" / "zeroshot" / "cifar10-frozen.json").read_text())["confidence"]["0.95"]
    ours, theirs = ([run["accuracy"] for run in cell[method]["runs"]] for method in ("DebiasPL", "FixMatch"))
    gains = [100 * (own - other) for own, other in zip(ours, theirs, strict=True)]
    low, high = mean_interval(gains)
    told = f"(+{sum(gains) / 3:.1f} points, 95 % interval {low:+.1f} to {high:+.1f}, worst seed {min(gains):+.1f})"
    assert told in " ".join(PAGE.split())


VERDICT = ROOT / "results" / "zeroshot" / "verdict.json"


def test_the_verdicts_are_what_was_measured():
    draws: dict[str, list[dict]] = {}
    for name, found in json.loads(VERDICT.read_text())["verdicts"].items():
        draws.setdefault(name.rpartition(", ")[0], []).append(found)
    for name, all_found in draws.items():
        cells = []
        for key in ("above chance", "clarity", "prompts", "views"):
            values = [found[key] for found in all_found]
            cells.append(f"{min(values):.2f} to {max(values):.2f}")
        words = [found["verdict"] for found in all_found]
        counted = ", ".join(
            f"{word} {words.count(word)}" for word in ("good", "doubtful", "at chance") if word in words
        )
        assert f"| {name} | {' | '.join(cells)} | {counted} |" in PAGE

"""docs/scikit-learn.md: its code, executed, and its numbers, compared with what was measured."""

import json
import re
from pathlib import Path

import pytest

from debiaspl.report.over_seeds import mean_interval
from tests.forked import program

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "scikit-learn.md").read_text()
CODE = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def runs(code: str, folder: Path) -> str:
    ran = program(code, folder=folder)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_there_are_two_examples():
    assert len(CODE) == 2


@pytest.mark.slow
def test_digits(tmp_path):
    """With a sixth of the steps: the page's own number is the benchmark's business."""
    code = CODE[0].replace("random_state=0", "random_state=0, max_iter=100")
    assert code != CODE[0]
    assert float(runs(code, tmp_path).split()[0]) > 0.5


@pytest.mark.slow
def test_code_runs_as_printed(tmp_path):
    assert float(runs(CODE[1], tmp_path).split()[-1]) > 0.85


def test_numbers_are_what_was_measured():
    measured = json.loads((ROOT / "results" / "estimator" / "results.json").read_text())
    assert (ROOT / "results" / "estimator" / "table.md").read_text() in PAGE
    assert f"{measured['features']['seconds']:.1f} s" in PAGE
    methods = {name: one["mean"] for name, one in measured["methods"].items()}
    ours = methods["DebiasedClassifier"]
    assert ours > methods["SelfTrainingClassifier"]
    assert ours > methods["LabelSpreading"]
    seeds = {name: one["seeds"] for name, one in measured["methods"].items()}
    assert len(seeds["DebiasedClassifier"]) == 10
    words = " ".join(PAGE.split())
    pixels = "the same, of pixels as features"
    assert (
        f"LabelSpreading is ahead, {100 * methods['LabelSpreading']:.1f} against {100 * methods[pixels]:.1f} %" in words
    )
    assert f"ten seeds: {100 * ours:.1f} %" in words
    lead, behind = (
        [100 * (one - other) for one, other in zip(*pair, strict=True)]
        for pair in (
            (seeds["DebiasedClassifier"], seeds["LabelSpreading"]),
            (seeds["LabelSpreading"], seeds[pixels]),
        )
    )
    low, high = mean_interval(lead)
    assert low < 0 < high
    assert f"not significant (+{sum(lead) / 10:.1f} points, 95 % interval {low:+.1f} to {high:+.1f}" in words
    low, high = mean_interval(behind)
    assert f"ahead by {sum(behind) / 10:.1f} points (95 % interval {low:.1f} to {high:.1f}" in words

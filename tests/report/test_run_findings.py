"""Findings about runs name the run that they are about."""

from types import SimpleNamespace

import pytest

from debiaspl.report.runs.findings import MUCH, _pseudo_labels


def method(title, ratio):
    return SimpleNamespace(title=title, middle=lambda name: ratio)


@pytest.mark.parametrize(
    ("ratio", "others", "todo"),
    [
        (1.9, [], "Nothing to mend here."),
        (1.9, [method("FixMatch", 56.5)], "Nothing to mend in DebiasPL, the best one."),
        (MUCH + 1, [method("FixMatch", 56.5)], "If the images are balanced, a larger strength takes out more of this."),
    ],
)
def test_what_to_do_about_pseudo_labels(ratio, others, todo):
    best = method("DebiasPL", ratio)
    (found,) = _pseudo_labels(best, [*others, best])
    assert f"DebiasPL {ratio:.1f}" in found.fact
    assert found.todo == todo
    assert _pseudo_labels(method("supervised", None), [method("supervised", None)]) == []

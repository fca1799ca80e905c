"""Findings about runs name the run that they are about."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from debiaspl.recipes import RECIPES
from debiaspl.report.findings.runs import _pseudo_labels, _worst, run_findings
from debiaspl.report.runs import RunRecord
from debiaspl.report.runs.methods import Method
from tests.report.test_fairness import RESULTS

RECIPE = RECIPES["digits-10"].to_json()


def method(title, off, without=0.0, reference="even shares"):
    measures = {"distance": off, "almost_none": None if off is None else without}
    return SimpleNamespace(
        title=title, pseudo=measures.__getitem__, reference=lambda: reference, ended=lambda: [{}, {}]
    )


def test_what_to_do_about_pseudo_labels():
    good, bad, none = method("DebiasPL", 0.05), method("DebiasPL", 0.3), method("supervised", None)
    other = method("FixMatch", 0.2, 1.5, "true shares")
    facts = {name: _pseudo_labels(best, [other, best])[0] for name, best in zip("gbn", (good, bad, none), strict=True)}
    assert "FixMatch 20 % (1.5 classes" in facts["g"].fact
    assert "DebiasPL 5 %" in facts["g"].fact
    assert len({finding.todo for finding in facts.values()}) == 3
    assert _pseudo_labels(none, [none]) == []


@pytest.mark.parametrize(
    ("confusion", "words"),
    [([[0, 5], [1, 4]], "0 of 5"), ([[4, 1], [0, 5]], "4 of 5"), ([[0, 80], [0, 80]], "0 %")],
)
def test_a_few_labels_are_counted_and_not_told_as_a_share(confusion, words):
    fact = _worst(SimpleNamespace(title="m", ended=lambda: [{"confusion": confusion}]), ["a", "b"]).fact
    assert fact.startswith("'a'")
    assert words in fact


def methods(*accuracies: list[float]) -> list[Method]:
    """Methods by their accuracies over seeds, on 1,000 test images."""
    return [
        Method(
            f"m{place}",
            [
                RunRecord(Path("run"), RECIPE | {"seed": seed}, [], RESULTS | {"accuracy": one, "test": 1000}, None)
                for seed, one in enumerate(values)
            ],
        )
        for place, values in enumerate(accuracies)
    ]


def test_a_difference_over_seeds_is_told_with_chance():
    base = [0.50, 0.52, 0.48, 0.51, 0.49]
    clear = methods(base, [one + gap for one, gap in zip(base, (0.1, 0.11, 0.1, 0.09, 0.1), strict=True)])
    first = run_findings(clear, ["a", "b"])[0]
    assert first.fact.startswith("m1 recognises 60.0 % of 1,000 test images")
    assert "10.0 points above m0 (significant, 1 in " in first.fact
    assert first.todo == "Use m1."
    vague = methods(base, [one + gap for one, gap in zip(base, (0.1, -0.08, 0.03, -0.02, 0.0), strict=True)])
    first = run_findings(vague, ["a", "b"])[0]
    assert "not significant with 5 seeds" in first.fact
    # The more methods there are, the more often the best of them is best by chance.
    two, five = (
        run_findings(methods(*[base] * count, [one["accuracy"] for one in clear[1].ended()]), ["a", "b"])
        for count in (1, 4)
    )
    odds = [int(found[0].fact.partition("1 in ")[2].partition(" by")[0].replace(",", "")) for found in (two, five)]
    assert odds[1] * 9 < odds[0] < odds[1] * 11
    assert "significant" not in run_findings(methods([0.5], [0.9]), ["a", "b"])[0].fact

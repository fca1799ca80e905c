"""Findings about runs name the run that they are about."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from debiaspl._measures import Cells
from debiaspl.recipes import RECIPES
from debiaspl.report.runs import RunRecord
from debiaspl.report.runs.findings import _pseudo_labels, _worst, run_findings
from debiaspl.report.runs.methods import Method
from tests.report.test_fairness import RESULTS

RECIPE = RECIPES["digits-10"]


def method(title, off, without=0.0, reference="even shares"):
    measures = None if off is None else {"distance": off, "almost_none": without, "reference": reference}
    return SimpleNamespace(title=title, pseudo=lambda: measures, ended=lambda: [{}, {}])


def test_what_to_do_about_pseudo_labels():
    good, bad, none = method("debiaspl", 0.05), method("debiaspl", 0.3), method("supervised", None)
    other = method("fixmatch", 0.2, 1.5, "true shares")
    facts = {name: _pseudo_labels(best, [other, best])[0] for name, best in zip("gbn", (good, bad, none), strict=True)}
    assert "fixmatch 20 % (1.5 classes" in facts["g"].fact
    assert "debiaspl 5 %" in facts["g"].fact
    assert len({finding.todo for finding in facts.values()}) == 3
    assert _pseudo_labels(none, [none]) == []


@pytest.mark.parametrize(
    ("confusion", "words"),
    [([[0, 5], [1, 4]], "0 of 5"), ([[4, 1], [0, 5]], "4 of 5"), ([[0, 80], [0, 80]], "0 %")],
)
def test_a_few_labels_are_counted_and_not_told_as_a_share(confusion, words):
    fact = _worst(SimpleNamespace(title="m", ended=lambda: [{}], cells=Cells.of_dense(confusion)), ["a", "b"]).fact
    assert fact.startswith("'a'")
    assert words in fact


def methods(*accuracies: list[float]) -> list[Method]:
    """Methods by their accuracies over seeds, on 1,000 test images."""
    return [
        Method(
            f"m{place}",
            [
                RunRecord(Path("run"), replace(RECIPE, seed=seed), [], RESULTS | {"accuracy": one, "test": 1000}, None)
                for seed, one in enumerate(values)
            ],
        )
        for place, values in enumerate(accuracies)
    ]


def test_a_difference_over_seeds_is_told_with_chance():
    base = [0.50, 0.52, 0.48, 0.51, 0.49, 0.5, 0.53, 0.47, 0.5, 0.5]
    better = [one + 0.1 + 0.01 * (place % 3 - 1) for place, one in enumerate(base)]
    first = run_findings(methods(base, better), ["a", "b"])[0]
    assert first.fact.startswith("m1 recognises 59.9 % of 1,000 test images")
    assert "9.9 points above m0 (significant, 1 in 510 by chance)" in first.fact  # 2 of 2**10 signs
    assert first.todo == "Use m1."
    vague = [one + 0.04 * (-1) ** place + 0.01 for place, one in enumerate(base)]
    assert "(not significant" in run_findings(methods(base, vague), ["a", "b"])[0].fact
    # The more methods there are, the more often the best of them is best by chance.
    assert "1 in 51 by chance" in run_findings(methods(*[base] * 4, better), ["a", "b"])[0].fact


def test_few_seeds_are_shown_and_not_tested():
    first = run_findings(methods([0.5] * 5, [0.6, 0.61, 0.62, 0.59, 0.6]), ["a", "b"])[0]
    assert "10.4 points above m0 (+10.0, +11.0, +12.0, +9.0, +10.0)" in first.fact
    assert "significant" not in first.fact + first.todo
    assert "6 seeds" in first.todo
    assert "significant" not in run_findings(methods([0.5], [0.9]), ["a", "b"])[0].fact


def test_a_method_is_recommended_only_if_every_difference_was_tested():
    base, better = [0.5 + 0.001 * place for place in range(10)], [0.6 + 0.001 * place for place in range(10)]
    assert run_findings(methods(base, better), ["a", "b"])[0].todo == "Use m1."
    assert "Use" not in run_findings(methods(base, base[:2], better), ["a", "b"])[0].todo

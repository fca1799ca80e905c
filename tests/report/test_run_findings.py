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


@pytest.mark.parametrize(
    ("off", "others", "todo"),
    [
        (0.05, [], "Nothing to do here."),
        (0.05, [method("FixMatch", 0.2)], "Nothing to do for DebiasPL, the best one."),
        (
            0.3,
            [method("FixMatch", 0.2)],
            "If the images are balanced, a larger strength removes more of this.",
        ),
    ],
)
def test_what_to_do_about_pseudo_labels(off, others, todo):
    best = method("DebiasPL", off)
    (found,) = _pseudo_labels(best, [*others, best])
    assert f"to match even shares: {'FixMatch 20 %, ' if others else ''}DebiasPL {100 * off:.0f} %." in found.fact
    assert found.todo == todo
    assert _pseudo_labels(method("supervised", None), [method("supervised", None)]) == []


def test_a_best_one_without_pseudo_labels_is_not_said_to_have_fine_ones():
    best = method("supervised", None)
    (found,) = _pseudo_labels(best, [best, method("FixMatch", 0.2, 1.5, "true shares")])
    assert found.fact.endswith("to match the true shares: FixMatch 20 % (1.5 classes on average with almost none).")
    assert found.todo == "supervised, the best one, does not use pseudo-labels: those of the others do not help yet."


@pytest.mark.parametrize(
    ("results", "fact"),
    [
        (
            {"confusion": [[0, 5], [1, 4]], "check": {}},
            "'a' is recognised least by m: 0 of 5 labels; 5 are taken for 'b'.",
        ),
        ({"confusion": [[4, 1], [0, 5]]}, "'a' is recognised least by m: 4 of 5 images; 1 is taken for 'b'."),
        (
            {"confusion": [[0, 80], [0, 80]]},
            "'a' is recognised least by m: 0 % of its images; 100 % are taken for 'b'.",
        ),
    ],
)
def test_a_few_labels_are_counted_and_not_told_as_a_share(results, fact):
    assert _worst(SimpleNamespace(title="m", ended=lambda: [results]), ["a", "b"]).fact == fact


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
    assert first.fact.startswith(
        "m1 recognises 60.0 % of 1,000 test images, the mean of 5 seeds; 10.0 points above m0 ("
    )
    assert "significant, 1 in " in first.fact
    assert first.todo == "Use m1."
    vague = methods(base, [one + gap for one, gap in zip(base, (0.1, -0.08, 0.03, -0.02, 0.0), strict=True)])
    first = run_findings(vague, ["a", "b"])[0]
    assert first.fact.endswith("points above m0 (not significant with 5 seeds).")
    assert first.todo == "More seeds may make the other differences significant."
    # The more methods there are, the more often the best of them is best by chance.
    two, five = (
        run_findings(methods(*[base] * count, [one["accuracy"] for one in clear[1].ended()]), ["a", "b"])
        for count in (1, 4)
    )
    odds = [int(found[0].fact.partition("1 in ")[2].partition(" by")[0].replace(",", "")) for found in (two, five)]
    assert odds[1] * 9 < odds[0] < odds[1] * 11
    assert "significant" not in run_findings(methods([0.5], [0.9]), ["a", "b"])[0].fact

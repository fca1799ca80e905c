"""What is said of a folder of photos in the end: a table, a verdict, a time."""

from dataclasses import replace
from pathlib import Path

import pytest

from debiaspl._measures import Cells
from debiaspl.features.crosscheck import Candidate, choose
from debiaspl.photos.check import Check, Outcome, about_shares, caption, handed_out, verdict


def candidate(name, right, folder="", total=40):
    return Candidate(name, Cells.of_dense([[len(right), total - len(right)], [0, 0]]), frozenset(right), folder=folder)


def photos(first, last):
    return [f"{number}.jpg" for number in range(first, last)]


def outcome(ours, theirs, total=40, folds=3):
    check = Check(folds, True, total)
    found = () if theirs is None else (candidate("supervised", theirs, "supervised", total),)
    found = (*found, candidate("debiaspl", ours, "", total))
    return Outcome(found, check, choose(found, folds > 0), {"labels": [], "check": {}})


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (photos(0, 20), photos(1, 21), "not show whether the unlabeled photos help: debiaspl has 20 of 40 labels"),
        (photos(0, 20), photos(0, 23), "the supervised model 23 (0 only with debiaspl, 3 only with the latter)."),
        (photos(0, 20), photos(0, 30), "do not help here: debiaspl has 20 of 40 labels right, the supervised model 30"),
        (photos(0, 30), photos(0, 20), "The unlabeled photos help: debiaspl has 30 of 40 labels right, the supervised"),
        (photos(0, 10), None, "this is a supervised model"),
    ],
)
def test_the_verdict_has_three_answers(ours, theirs, words):
    assert words in verdict(outcome(ours, theirs))


def test_a_supervised_model_that_fine_tunes_is_not_compared_with_one():
    found = outcome(photos(0, 20), photos(0, 23))
    fit, run = (replace(one, name=name) for one, name in zip(found.candidates, ("frozen", "supervised"), strict=True))
    assert "this is a supervised model" in verdict(replace(found, candidates=(fit, run)))


def test_it_says_which_model_is_used_and_why():
    run = Path("runs/first")
    assert (
        handed_out(outcome(photos(0, 20), photos(0, 23)), run) == "predict, next and export use this model: debiaspl."
    )
    other = handed_out(outcome(photos(0, 20), photos(0, 30)), run)
    assert "use the model supervised, in runs/first/supervised, because it is significantly better" in other
    assert "30 of 40 right instead of 20" in other
    assert "remove runs/first/chosen.json" in other


def test_the_table_shows_how_few_they_are():
    found = outcome(photos(0, 34), photos(0, 37), 50)
    assert found.candidates[1].cells == ("debiaspl", "34", "50", "68 %", "54 to 79 %", "68 %")
    nothing = outcome(photos(0, 4), photos(0, 4), 4, folds=0)
    assert "says nothing about other photos" in caption(nothing)
    assert "It is not known whether the unlabeled photos help" in verdict(nothing)


def test_equal_labels_of_a_folder_that_is_not_balanced_are_named():
    found = outcome(photos(0, 4), photos(0, 4))
    assert "shares" not in caption(found)
    found.results["check"]["predicted"] = [300, 40]
    for labels, unlike in (([5, 5], True), ([6, 5], True), ([9, 1], False)):
        found.results["labels"] = labels
        assert ("shares" in caption(found)) == unlike
        assert "%" not in caption(found), "predictions are not an estimate: a model may predict one class alone"


def test_shares_are_shown_beside_those_of_the_labels():
    values = {"estimate": [0.8, 0.2], "low": [0.7, 0.1], "high": [0.9, 0.3], "labels": [0.5, 0.5]}
    shares, apart = about_shares({"shares": values, "unlabeled": 100}, ("gull", "owl"))
    assert "gull 80 (70 to 90)" in shares
    assert "gull is 50 % of your labels, but about 80 %" in apart
    assert len(about_shares({"shares": {**values, "labels": [0.75, 0.25]}, "unlabeled": 100}, ("gull", "owl"))) == 1
    assert about_shares({"unlabeled": 100}, ("gull", "owl")) == []

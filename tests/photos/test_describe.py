"""What is said of a folder of photos in the end: a table, a verdict, a time."""

import pytest

from debiaspl.photos.check import Check
from debiaspl.photos.describe import caption, rows, verdict
from debiaspl.photos.duration import in_words
from debiaspl.photos.run import Outcome


def outcome(ours, theirs, total, folds=3):
    def results(right):
        return {"confusion": [[right, total - right], [0, 0]], "test": total, "worst_recall": right / total}

    check = Check(folds, True, total)
    return Outcome(results(ours), None if theirs is None else results(theirs), check)


@pytest.mark.parametrize(
    ("ours", "theirs", "total", "words"),
    [
        (34, 37, 50, "did not help on these labels: 34 of 50 right, and 37 from the labels alone. With so few labels"),
        (34, 34, 50, "did not help on these labels"),
        (700, 900, 1000, "and 900 from the labels alone. The supervised model is in the folder supervised; more"),
        (38, 36, 50, "may have helped: 38 of 50 labels right, instead of 36. With so few labels that may be chance."),
        (900, 700, 1000, "The unlabeled photos help: 900 of 1000 labels right, instead of 700."),
        (10, None, 10, "this is a supervised model"),
    ],
)
def test_the_verdict_is_plain(ours, theirs, total, words):
    assert words in verdict(outcome(ours, theirs, total))


def test_the_table_shows_how_few_they_are():
    assert rows(outcome(34, 37, 50))[1] == ("DebiasPL", "34", "50", "68 %", "54 to 79 %", "68 %")
    nothing = outcome(4, 4, 4, folds=0)
    assert "tells nothing of other photos" in caption(nothing)
    assert "cannot be told" in verdict(nothing)


def test_times_in_words():
    assert [in_words(seconds) for seconds in (2, 44, 130, 9 * 60, 7200)] == [
        "10 seconds",
        "40 seconds",
        "2 minutes",
        "9 minutes",
        "2.0 hours",
    ]

"""What is said of a run, from histories that are made up."""

from typing import Any

import pytest

from debiaspl.training.verdict import verdict

STEPS, LABELS = 1000, 100


def history(neighbours: float | None = 0.7, loss: tuple[float, float] = (6.0, 4.0), **lists: list[float]) -> list[Any]:
    """Twenty-one measurements, the first before training: healthy, but for the lists that are given, which go on with
    their last number."""
    healthy = {
        "rank": [25, 20, 24, 28, 28, 25, 23, 22, 21],
        "spread": [0.3, 0.1, 0.2, 0.4, 0.5, 0.6],
        "overlap": [0.93, 0.94, 0.93, 0.92, 0.88, 0.8, 0.74, 0.7, 0.66, 0.64, 0.62, 0.6],
    }
    values = {name: [*given, *[given[-1]] * 21][:21] for name, given in (healthy | lists).items()}
    made = []
    for number in range(21):
        measured = {name: given[number] for name, given in values.items()} | {"neighbours": neighbours}
        now = loss[0] + (loss[1] - loss[0]) * number / 20
        made.append({"step": 50 * number, "losses": {"contrast": now} if number else {}, "health": measured})
    return made


def said(made: list[Any], classes: int = 0, labels: int = LABELS) -> list[tuple[int, str]]:
    """Every verdict on the way, with its measurement's number."""
    found = [verdict(made[: number + 1], STEPS, labels, classes) for number in range(len(made))]
    return [(number, one.kind) for number, one in enumerate(found) if one is not None]


@pytest.mark.parametrize("neighbours", [0.7, None])
def test_nothing_is_said_of_a_healthy_run(neighbours):
    assert said(history(neighbours)) == []


def test_features_that_become_alike_have_collapsed():
    made = history(spread=[0.3, 0.3, 0.2, 0.1, 0.01])
    assert said(made)[0] == (6, "collapsed")  # when it was seen three times
    told = verdict(made, STEPS, LABELS)
    assert told is not None
    assert told.is_warning
    assert told.fact == (
        "The features have collapsed: their effective rank is 21.0 and was 28.0, and their spread is 0.01, where 1 is "
        "even and 0 is all alike, while the loss fell from 5.90 to 4.00."
    )
    assert said(history(spread=[0.3, 0.01, 0.01, 0.2])) == []  # the first steps move features far, and back
    assert said(history(spread=[*[0.4] * 10, 0.01, 0.01, 0.4])) == []  # and two are not three


def test_features_that_lose_their_directions_have_collapsed():
    kinds = dict(said(history(rank=[25, 20, 10, 4.9])))
    assert kinds[4] == "collapsing"
    assert {kinds[number] for number in range(5, 21)} == {"collapsed"}
    assert said(history(rank=[25, 20, 20, 20, 0])) == [(number, "collapsed") for number in range(6, 21)]


def test_features_that_labels_are_learned_with_may_shrink_to_a_direction_for_each_class():
    shrunk = history(rank=[100, 80, 60, 40, 20, 9])
    assert said(shrunk)[-1] == (20, "collapsed")
    assert said(shrunk, classes=10) == []
    assert said(history(rank=[100, 80, 60, 40, 20, 4.4]), classes=10)[0] == (7, "collapsed")
    assert said(history(rank=[100, 80, 60, 40, 20, 1]), classes=2) == []


def test_a_rank_that_goes_on_falling_is_a_slow_collapse():
    """As SwAV's with codes that are nearly alike: the overlap stays where it was."""
    falling = [26, 19, 20.4, 18.3, 15.2, 13.8, 13.1, 12.6, 12.3, 12.0]
    made = history(rank=falling, overlap=[0.93, 0.89, 0.82, 0.78])
    assert said(made)[0] == (7, "collapsing")
    told = verdict(made, STEPS, LABELS)
    assert told is not None
    assert told.fact == (
        "The features are collapsing slowly: their effective rank fell from 20.4 at step 100 to 12.0, and images are "
        "distinguished no better, while the loss fell from 5.90 to 4.00."
    )
    # While views are learned to be alike, a rank falls too, and less is said of it.
    assert said(history(rank=falling, overlap=[0.93, 0.89, 0.82, 0.78, 0.6])) == []
    assert said(history(rank=[*falling, 11, 10, 9], overlap=[0.93, 0.89, 0.82, 0.78, 0.6]))[0] == (12, "collapsing")
    # One that recovers is none.
    assert said(history(rank=[26, 19, 20.4, 12, 12, 16], overlap=[0.93, 0.89, 0.82, 0.78])) == []
    # Nor is the fall from random weights, which are spread over many directions.
    assert said(history(rank=[40, 20])) == []


def test_half_a_run_in_which_nothing_is_learned():
    idle = [0.93, 0.9, 0.89]
    assert said(history(overlap=idle))[0] == (10, "idle")
    told = verdict(history(overlap=idle), STEPS, LABELS)
    assert told is not None
    assert "two views of an image are as far apart as before training (overlap 0.89, and 0.93 before)" in told.fact
    assert said(history(overlap=[0.93, 0.9, 0.86])) == []
    assert said(history(overlap=[0.6, 0.58])) == []  # features that began with a start


def test_worse_than_before_training_where_labels_are_enough_to_tell():
    def made(after: float) -> list[Any]:
        records = history()
        for record in records[1:]:
            record["health"]["neighbours"] = after
        return records

    assert said(made(0.45))[0] == (10, "worse")
    assert said(made(0.55)) == []
    assert said(made(0.45), labels=40) == []
    assert said(made(0.9)) == []


def test_still_improving_at_the_end_is_no_warning():
    made = history(overlap=[0.95 - 0.02 * number for number in range(21)])
    assert said(made) == [(20, "improving")]
    told = verdict(made, STEPS, LABELS)
    assert told is not None
    assert not told.is_warning
    assert "fell from 0.65 to 0.55" in told.fact


def test_measurements_close_together_must_agree_for_a_tenth_of_the_run():
    """With one for every step, three steps are a moment."""
    made = [
        {"step": step, "losses": {"contrast": 1.0}, "health": record["health"] | {"spread": 0.01 if low else 0.5}}
        for step, low, record in ((step, 40 <= step < 48, history()[-1]) for step in range(101))
    ]
    found = [verdict(made[: number + 1], 100, LABELS) for number in range(101)]
    assert not any(found)


def test_a_history_that_begins_on_the_way():
    """Of a run that another version has begun."""
    made = history(overlap=[0.93, 0.9])[5:]
    assert said(made) == []
    assert said(history(spread=[0.3, 0.01])[5:])[0][1] == "collapsed"

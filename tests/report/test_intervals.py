"""Intervals against the t table that every textbook prints, and against folds drawn at random."""

from statistics import fmean, stdev

import numpy as np
import pytest

from benchmarks.repeat import next_interval
from debiaspl._over_seeds import mean_interval, sign_flip, summary

# Two-sided 95 %, by degrees of freedom.
TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262}


@pytest.mark.parametrize("freedom", TABLE)
def test_intervals_are_those_of_the_t_table(freedom):
    values = [88.0 + 1.7 * ((7 * place) % 5) for place in range(freedom + 1)]
    count, middle, spread = len(values), fmean(values), stdev(values)
    for found, half in (
        (mean_interval(values), TABLE[freedom] * spread / count**0.5),
        (next_interval(values), TABLE[freedom] * spread * (1 + 1 / count) ** 0.5),
    ):
        assert found == pytest.approx((middle - half, middle + half), abs=2e-3 * spread)


def test_one_value_has_no_interval_and_equal_values_have_the_finest_step():
    assert summary([0.942, 0.962, 0.96, 0.954])["mean"] == 0.9545  # without the noise of floats
    assert mean_interval([90.0]) is None
    assert next_interval([]) is None
    low, high = next_interval([90.0, 90.0, 90.0], finest=0.01)
    assert 89.9 < low < 90.0 < high < 90.1


def test_a_further_run_lies_within_as_often_as_said():
    drawn = np.random.default_rng(0).normal(80, 2, (2000, 4))
    inside = [low <= last <= high for *three, last in drawn.tolist() for low, high in [next_interval(three)]]
    assert fmean(inside) == pytest.approx(0.95, abs=0.015)


def test_the_sign_flip_test_counts_equal_sums_so_that_many_seeds_are_quick():
    assert sign_flip([0.002] * 40) == 2 / 2**40
    assert sign_flip([0.01, -0.01, 0.03, 0.0]) == 0.75

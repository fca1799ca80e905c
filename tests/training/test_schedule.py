"""The learning rate: every point of the line and of the wave, by hand."""

import math
from dataclasses import replace

import pytest

from debiaspl.training.recipe import FIXMATCH, HALF_WAVE
from debiaspl.training.update import rate
from tests.training.tiny import TINY


@pytest.mark.parametrize("arc", [0.0, FIXMATCH, 0.5])
def test_without_a_warm_up_it_is_the_cosine_bit_for_bit(arc):
    expected = [math.cos(arc * math.pi * number / 37) for number in range(37)]
    assert [rate(number, 37, arc) for number in range(37)] == expected


def test_the_half_wave_falls_to_zero_and_is_level_at_both_ends():
    falls = [rate(k, 100, HALF_WAVE) for k in range(101)]
    assert falls == pytest.approx([math.cos(math.pi * k / 200) ** 2 for k in range(101)])
    assert falls[50] == pytest.approx(0.5)
    assert falls[0] - falls[1] < 1e-3 > falls[99] - falls[100]


@pytest.mark.parametrize("length", [10, 100, 198_181])
def test_it_rises_in_a_line_then_falls(length):
    """As the released scripts have it: 5 of 50 epochs up, the half wave over the other 45."""
    up = round(0.1 * length)
    for number in {0, 1, up - 1, up, up + 1, length // 2, length - 1}:
        done = (number - up) / (length - up)
        slow = (number + 1) / up if number < up else 0.5 * (1 + math.cos(math.pi * done))
        assert rate(number, length, HALF_WAVE, 0.1) == pytest.approx(slow, abs=1e-12)
    assert rate(up - 1, length, HALF_WAVE, 0.1) == 1 == rate(up, length, HALF_WAVE, 0.1)


def test_it_is_never_zero_or_above_one():
    for length in (1, 2, 3, 7):
        for warm_up in (0.0, 0.1, 0.5, 0.99):
            assert all(0 < rate(number, length, HALF_WAVE, warm_up) <= 1 for number in range(length))


@pytest.mark.parametrize("setting", [{"warm_up": 1.0}, {"warm_up": -0.1}, {"arc": 0.7}])
def test_wrong_settings_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        replace(TINY, **setting)

"""Tails of distributions against sums written by hand."""

import math
import re
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import pytest
from scipy import stats

import debiaspl
from debiaspl._measures import any_at_least, at_least, at_most, drawn_at_least, drawn_at_most, mcnemar, told, wilson


def binomial(count: int, trials: int, share: float) -> float:
    return math.comb(trials, count) * share**count * (1 - share) ** (trials - count)


@pytest.mark.parametrize(("trials", "share"), [(1, 0.5), (7, 0.1), (20, 1 / 3), (40, 0.9)])
def test_binomial_tails_are_sums(trials, share):
    for count in range(-1, trials + 2):
        above = sum(binomial(one, trials, share) for one in range(max(count, 0), trials + 1))
        below = sum(binomial(one, trials, share) for one in range(min(count, trials) + 1))
        assert at_least(count, trials, share) == pytest.approx(above, rel=1e-9)
        assert at_most(count, trials, share) == pytest.approx(below, rel=1e-9)


def test_draws_without_putting_back_are_counted_one_by_one():
    special, total = 4, 9
    for draws in range(total + 1):
        found = [len(set(drawn) & set(range(special))) for drawn in combinations(range(total), draws)]
        for count in range(-1, draws + 2):
            share = sum(one >= count for one in found) / len(found)
            assert drawn_at_least(count, draws, special, total) == pytest.approx(share)
            share = sum(one <= count for one in found) / len(found)
            assert drawn_at_most(count, draws, special, total) == pytest.approx(share)


@pytest.mark.parametrize("count", [600, 900, 980])
def test_far_tails_keep_their_digits(count):
    """Down to 1e-260: a finding multiplies a tail by the number of classes."""
    ways = sum(math.comb(1000, one) for one in range(count, 1001))
    assert at_least(count, 1000, 0.5) == pytest.approx(float(Fraction(ways, 2**1000)), rel=1e-9)
    assert at_most(1000 - count, 1000, 0.5) == pytest.approx(float(Fraction(ways, 2**1000)), rel=1e-9)
    ways = sum(math.comb(1000, one) * math.comb(3000, 1000 - one) for one in range(count, 1001))
    assert drawn_at_least(count, 1000, 1000, 4000) == pytest.approx(
        float(Fraction(ways, math.comb(4000, 1000))), rel=1e-9, abs=1e-300
    )


def test_draws_from_many_things_and_wilsons_interval_are_those_of_scipy():
    """Written out here, because to import scipy's statistics takes a second of every run."""
    for total, special, draws in ((10_000, 2_500, 4_000), (60_000, 30, 6_000), (300, 299, 150)):
        for count in {0, 1, draws * special // total, draws * special // total + 30, min(draws, special), draws}:
            expected = stats.hypergeom.sf(count - 1, total, special, draws)
            assert drawn_at_least(count, draws, special, total) == pytest.approx(expected, rel=1e-7, abs=1e-300)
    for right, total in ((0, 1), (1, 1), (3, 7), (0, 500), (450, 500), (500, 500), (1, 60_000)):
        expected = stats.binomtest(right, total).proportion_ci(method="wilson")
        assert wilson(right, total) == pytest.approx((expected.low, expected.high), rel=1e-12, abs=1e-15)


def test_the_statistics_of_scipy_are_not_imported_for_them():
    texts = {file: file.read_text() for file in Path(debiaspl.__file__).parent.rglob("*.py")}
    assert [file.name for file, text in texts.items() if re.search("(from|import) scipy.stats", text)] == []


def test_things_that_happen_by_themselves_are_counted_case_by_case():
    each = (0.1, 0.5, 0.9, 0.3)
    for count in range(6):
        expected = sum(
            math.prod(p if happens else 1 - p for p, happens in zip(each, case, strict=True))
            for case in product((False, True), repeat=4)
            if sum(case) >= count
        )
        assert any_at_least(count, each) == pytest.approx(expected)


def test_coins():
    assert mcnemar(5, 0, sides=1) == 1 / 32
    assert mcnemar(0, 0, sides=1) == 1
    assert mcnemar(0, 5) == mcnemar(5, 0) == 1 / 16
    assert mcnemar(3, 3) == 1


@pytest.mark.parametrize(
    ("chance", "words"),
    [
        (0.001, "significant, 1 in 1,000 by chance"),
        (1 / 1234, "significant, 1 in 1,200 by chance"),
        (1e-30, "significant, less than 1 in 1,000,000 by chance"),
        (0.25, "not significant, 1 in 4 by chance"),
        (0.00996, "significant, 1 in 100 by chance"),
        (0.01004, "not significant, 1 in 99 by chance"),
        (0.8, "not significant"),
        (1.0, "not significant"),
    ],
)
def test_chance_in_words(chance, words):
    assert told(chance) == words

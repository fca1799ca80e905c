"""Findings of an audit are silent where chance alone is at work, and count every test."""

import math

import numpy as np
import pytest

from debiaspl._measures import LEVEL
from debiaspl.predictions import Raw, predictions_from
from debiaspl.report.audit import audit
from debiaspl.report.audit.findings import Finding, chance_of_imbalance, findings
from debiaspl.report.audit.measures import Shares


def binomial(count: int, trials: int, share: float) -> float:
    return math.comb(trials, count) * share**count * (1 - share) ** (trials - count)


def found(label, classes: int, **more) -> list[Finding]:
    logits = more.pop("logits", None)
    fields = {} if label is None else {"label": np.asarray(label)}
    raw = Raw("here", fields | more, {} if logits is None else {"logits": logits}, tuple(map(str, range(classes))))
    return findings(audit(predictions_from(raw)))


def advises(finding: Finding) -> bool:
    return finding.chance is not None and finding.chance <= LEVEL


def drawn(case: str, random: np.random.Generator) -> list[Finding]:
    """Predictions of a model that favours nothing."""
    if case == "labels":
        return found(random.integers(0, 10, 60), 10)
    if case == "labels of many classes":
        return found(random.integers(0, 50, 150), 50)
    if case == "confidence":
        return found(random.integers(0, 4, 200), 4, confidence=np.where(random.random(200) < 0.6, 0.99, 0.5))
    truth = random.integers(0, 6, 80)
    if case == "few truths":
        return found(random.integers(0, 6, 80), 6, truth=np.where(np.arange(80) < 30, truth, -1))
    if case == "truth":
        return found(np.where(random.random(80) < 0.6, truth, random.integers(0, 6, 80)), 6, truth=truth)
    logits = random.normal(0, 1, (80, 6)).astype(np.float32)
    logits[np.arange(80), truth] += 2
    return found(None, 6, logits=logits, truth=truth)


@pytest.mark.parametrize("case", ["labels", "labels of many classes", "confidence", "few truths", "truth", "scores"])
def test_of_chance_alone_no_more_than_one_finding_in_a_hundred_is_wrong(case):
    alarms = np.zeros(3)
    for seed in range(400):
        alarms += [advises(finding) for finding in drawn(case, np.random.default_rng(seed))]
    # 4 expected at the most; 11 or more would be seen once in 300 times.
    assert alarms.max() <= 10


def test_a_bias_of_useful_size_is_found():
    for seed in range(20):
        random = np.random.default_rng(seed)
        shares = np.full(10, 0.7 / 9)
        shares[3] = 0.3
        first = found(random.choice(10, 150, p=shares), 10)[0]
        assert advises(first)
        assert "'3' is predicted" in first.fact
        truth = random.integers(0, 10, 300)
        pulled = np.where(random.random(300) < 0.2, 7, truth)
        first = found(pulled, 10, truth=truth)[0]
        assert advises(first)
        assert "'7' is predicted" in first.fact


def test_chance_counts_the_classes_that_were_looked_at():
    label = np.repeat(np.arange(4), [30, 10, 10, 5])
    first, second = found(label, 4)[:2]
    assert first.chance == pytest.approx(4 * sum(binomial(one, 55, 0.25) for one in range(30, 56)))
    assert second.chance == pytest.approx(4 * sum(binomial(one, 55, 0.25) for one in range(6)))
    truth = np.repeat(np.arange(5), 20)
    label = truth.copy()
    label[:9], label[20] = 3, 2  # of five classes, one has no mistake in it
    first, second = found(label, 5, truth=truth)[:2]
    assert first.chance == pytest.approx(4 / 2**9)
    wrong = sum(math.comb(20, one) * math.comb(80, 10 - one) for one in (9, 10)) / math.comb(100, 10)
    assert second.chance == pytest.approx(5 * wrong)


def test_chance_counts_each_way_of_looking():
    assert chance_of_imbalance(Shares(np.array([30, 10, 10, 5]))) == pytest.approx(
        2 * 4 * sum(binomial(one, 55, 0.25) for one in range(30, 56))
    )
    for true, expected in (
        ([40, 40, 3], 2 * 3 / math.comb(83, 3)),  # recognised least, of three classes
        ([40, 40, 10], 2 * (1 - (1 - (51 / 91) ** 90) ** 2 * (1 - (81 / 91) ** 90))),  # never predicted
    ):
        truth = np.repeat(np.arange(3), true)
        assert found(np.where(truth == 2, 0, truth), 3, truth=truth)[1].chance == pytest.approx(expected)


def test_a_few_known_truths_do_not_hide_what_all_images_show():
    truth = np.full(1000, -1)
    truth[[0, 1, 2]] = 0
    first = found(np.repeat([0, 1], [990, 10]), 2, truth=truth)[0]
    assert advises(first)
    assert first.fact.startswith("'0' is predicted 2.0 times as often as an even share (990 of 1,000 images)")
    truth = np.concatenate([[0], np.full(9_999, -1)])
    second = found(np.arange(10_000) % 2, 4, truth=truth)[1]
    assert advises(second)
    assert second.fact.startswith("2 of 4 classes never predicted: '2', '3'")
    second = found(np.arange(30) % 3, 4, truth=np.concatenate([[0], np.full(29, -1)]))[1]
    assert second.chance == pytest.approx(2 * (1 - (1 - 0.75**30) ** 4))


def test_a_few_known_truths_that_show_more_than_chance_come_first_and_both_looks_are_counted():
    label = np.arange(1000) % 5
    truth = np.full(1000, -1)
    truth[:75] = np.where(label[:75] == 1, 0, label[:75])
    first = found(label, 5, truth=truth)[0]
    assert "'1' is predicted for 15 images, and no image is of it" in first.fact
    assert first.chance == pytest.approx(2 * 2 / 2**15)
    first = found(np.repeat(np.arange(5), [60, 35, 35, 35, 35]), 5, truth=np.concatenate([[0], np.full(199, -1)]))[0]
    assert first.chance == pytest.approx(2 * 5 * sum(binomial(one, 200, 0.2) for one in range(60, 201)))


def test_a_class_favoured_much_comes_before_one_with_more_predictions_too_many():
    truth = np.repeat([0, 1, 2], [100, 1, 68])
    label = np.repeat([0, 1, 0, 1, 2], [100, 1, 10, 8, 50])
    first = found(label, 3, truth=truth)[0]
    assert first.fact.startswith("'1' is predicted 9.0 times as often as it occurs (9 and 1 images)")
    assert not advises(first)


def test_what_is_more_than_chance_comes_before_what_is_larger():
    """Class 0 is called 15 times too often, of 185 mistakes; class 1 13 times too often, of 13."""
    truth = np.concatenate([np.full(100, 0), np.full(120, 2), np.full(13, 3), np.full(20, 1)])
    label = np.concatenate([np.full(85, 2), np.full(15, 0), np.full(100, 0), np.full(20, 2), np.full(33, 1)])
    first = found(label, 4, truth=truth)[0]
    assert "'1' is predicted 1.6 times as often as it occurs (33 and 20 images); significant" in first.fact


def test_a_class_that_is_always_mistaken_is_named_with_what_it_is_taken_for_only_if_that_is_no_chance():
    truth = np.repeat(np.arange(5), 20)
    same, all_over = truth.copy(), truth.copy()
    same[:16] = 4
    all_over[:16] = np.tile([1, 2, 3, 4], 4)
    second = found(same, 5, truth=truth)[1]
    assert second.fact.startswith("'0' is recognised least: 20 % of its images, 84 % of all; significant")
    assert "80 % of them are mistaken for '4'" in second.fact
    second = found(all_over, 5, truth=truth)[1]
    assert advises(second)
    assert "taken for" not in second.fact
    all_over[:16] = np.repeat([1, 2, 3, 4], [3, 2, 2, 9])  # 1 in 130 for one class, but four were looked at
    assert "taken for" not in found(all_over, 5, truth=truth)[1].fact


@pytest.mark.parametrize(("images", "expected"), [(300, False), (10, True)])
def test_empty_classes_of_few_images_are_chance(images, expected):
    label = np.arange(images) % 8
    assert advises(found(label, 10)[1]) is not expected


def test_a_correction_is_advised_by_the_images_that_it_mends():
    truth = np.repeat([0, 1], [100, 100])
    logits = np.where(truth[:, None] == [0, 1], 1.0, 0.0).astype(np.float32)
    right = logits + np.array([0.0, 0.3], np.float32)
    mended = right.copy()
    mended[:30, 1] += 0.75  # near enough to be turned back
    third = found(None, 2, logits=mended, truth=truth)[2]
    assert "30 more right, 0 more wrong; significant" in third.fact
    assert third.todo == "Use debiasing: these labels get better."
    mended = right.copy()
    mended[:1, 1] += 0.75
    third = found(None, 2, logits=mended, truth=truth)[2]
    assert "(1 more right, 0 more wrong; not significant)" in third.fact
    assert third.todo.startswith("Look at the images")
    even = np.tile(np.eye(4, dtype=np.float32), (8, 1))
    even[:1, 1] += 1.001
    third = found(None, 4, logits=even)[2]
    assert not advises(third)
    assert third.todo.startswith("Keep these labels")

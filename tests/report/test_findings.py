"""What the audit says in words is true of its numbers, and silent where chance alone is at work; every test counts."""

import math

import numpy as np
import pytest

from debiaspl._measures import LEVEL
from debiaspl.predictions import Raw, predictions_from, read_predictions
from debiaspl.report.audit import audit
from debiaspl.report.audit.findings import EVEN, LABELS, TRUTH, Finding, chance_of_imbalance, favoured, findings
from debiaspl.report.audit.measures import Shares
from tests.report import slow
from tests.report.made import write_csv
from tests.report.test_audit import AUDITS, SIZES


def of(fields, classes=None, **matrices):
    arrays = {name: np.asarray(values) for name, values in fields.items()}
    return audit(predictions_from(Raw("here", arrays, matrices, classes)))


def test_three_findings_each_with_something_to_do():
    results = findings(AUDITS[10])
    data = SIZES[10]
    predicted, true = (slow.counts(values.tolist(), 10) for values in (data.label, data.truth))
    assert f"'class 0' is predicted {predicted[0] / true[0]:.1f} times as often as it occurs" in results[0].fact
    recalls = [slow.recall(data.truth.tolist(), data.label.tolist(), number) or 0 for number in range(10)]
    assert f"'class {recalls.index(min(recalls))}' is recognised least: {100 * min(recalls):.0f} %" in results[1].fact
    after = AUDITS[10].to_json()["debiased"]
    assert f"would change {after['changed']} of the 700 labels" in results[2].fact
    assert [finding.part for finding in results] == ["uncertain", "confusion", "change"]
    assert all(finding.todo for finding in results)


def test_nothing_is_favoured_where_each_class_is_predicted_as_often_as_it_occurs():
    labels = np.arange(40) % 4
    for fields in ({"label": labels, "truth": labels}, {"label": labels}):
        first, second, _ = findings(of(fields))
        assert (first.chance, second.chance) == (None, None)


def test_debiasing_that_hurts_is_not_recommended():
    # The images themselves are imbalanced and the model is right: evening it out makes it worse.
    truth = np.array([0] * 90 + [1] * 10)
    logits = np.where(truth[:, None] == [0, 1], 0.3, 0.0).astype(np.float32) + np.array([0.2, 0.0], np.float32)
    worse = audit(predictions_from(Raw("here", {"truth": truth}, {"logits": logits})), strength=5.0)
    assert findings(worse)[2].todo.startswith("Keep these labels")


@pytest.mark.parametrize(
    ("truth", "words"), [(None, "chance"), ([0, 1, 2, 3], "2 images of 4"), ([0, 1, 0, 1], "no image")]
)
def test_classes_that_are_never_predicted(truth, words):
    fields = {"label": [0, 1, 0, 1]} | ({} if truth is None else {"truth": truth})
    fact = findings(of(fields, ("a", "b", "c", "d")))[1].fact
    assert "2 of 4 classes" in fact
    assert "'c', 'd'" in fact
    assert words in fact


def uneven(**fields):
    """Predictions of two classes, 150 to 50, and what else is known."""
    return of({"label": [0] * 150 + [1] * 50} | fields, ("petunia", "rose"))


def test_even_shares_are_an_assumption_and_so_nothing_is_called_a_bias():
    found = uneven()
    assert (favoured(found).by, favoured(found).times) == (EVEN, 1.5)
    assert favoured(found).chance < 1e-6
    first, second, _ = findings(found)
    for finding in (first, second):
        assert "bias only if the images are evenly spread" in finding.fact
        assert "favoured" not in finding.fact + finding.todo
        assert "--column truth=" in finding.todo


def test_the_shares_of_labels_are_what_predictions_are_compared_with(tmp_path):
    """Petunias are half of the images; the labels of the run show that."""
    write_csv(tmp_path / "predictions.csv", {"label": ["petunia"] * 150 + ["rose"] * 50})
    (tmp_path / "config.json").write_text("{}")
    for counts, by, times in (([30, 10], LABELS, 1.0), ([10, 30], LABELS, 3.0), ([20, 20], EVEN, 1.5)):
        (tmp_path / "results.json").write_text(f'{{"labels": {counts}}}')
        found = audit(read_predictions(tmp_path))
        most = favoured(found)
        assert most.by == by
        assert most.times == pytest.approx(times) or not most.holds
    (tmp_path / "results.json").write_text('{"labels": [10, 30]}')
    # Fisher's test by counting
    exact = sum(math.comb(160, k) * math.comb(80, 200 - k) for k in range(150, 161)) / math.comb(240, 200)
    assert favoured(audit(read_predictions(tmp_path))).chance == pytest.approx(2 * exact, rel=1e-6)
    assert "label" in findings(audit(read_predictions(tmp_path)))[0].fact


def test_true_classes_are_compared_with_where_enough_are_known():
    truth = np.arange(200) % 2
    assert favoured(uneven(truth=truth)).by == TRUTH
    truth[100:] = -1
    assert favoured(uneven(truth=truth)).by == TRUTH
    truth[99] = -1
    assert favoured(uneven(truth=truth)).by == EVEN


def binomial(count: int, trials: int, share: float) -> float:
    return math.comb(trials, count) * share**count * (1 - share) ** (trials - count)


def found(label, classes: int, logits=None, **more) -> list[Finding]:
    fields = more if label is None else {"label": label} | more
    return findings(of(fields, tuple(map(str, range(classes))), **({} if logits is None else {"logits": logits})))


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


def test_a_class_that_no_image_has_is_predicted_more_often_than_it_occurs():
    truth = np.arange(40) % 2
    first, *_ = findings(of({"label": np.where(np.arange(40) < 12, 2, truth), "truth": truth}, ("a", "b", "c")))
    assert first.fact.startswith("'c' is predicted more often than it occurs (12 and 0 images)")


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

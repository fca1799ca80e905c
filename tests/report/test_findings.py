"""What the audit says in words is true of its numbers."""

import math

import numpy as np
import pytest

from debiaspl.predictions import Raw, predictions_from, read_predictions
from debiaspl.report.audit import audit
from debiaspl.report.audit.findings import EVEN, LABELS, TRUTH, Finding, favoured, findings
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


def test_a_few_true_classes_are_labels_to_compare_with():
    truth = np.full(200, -1)
    truth[:10], truth[150:] = 0, 1  # 1 to 5
    assert favoured(uneven(truth=truth)).by == LABELS
    truth[150:198] = -1  # too few to show anything
    assert favoured(uneven(truth=truth)).by == EVEN
    assert favoured(uneven(truth=[0, 1] * 100)).by == TRUTH


def of_threshold(label, confidence, classes: int) -> Finding:
    return findings(of({"label": label, "confidence": confidence}, tuple(str(number) for number in range(classes))))[2]


def test_a_threshold_is_told_by_the_class_it_keeps_most_and_its_own_share_before():
    before, kept = (200, 150, 50), (80, 90, 15)
    sure = [
        0.99 if number < most else 0.5 for most, all_of in zip(kept, before, strict=True) for number in range(all_of)
    ]
    finding = of_threshold(np.repeat(np.arange(3), before), sure, 3)
    assert f"'1', the class kept most, has {3 * 90 / 185:.2f} times an even share of these, and 1.12" in finding.fact
    as_many = sum(math.comb(150, one) * math.comb(250, 185 - one) for one in range(90, 151)) / math.comb(400, 185)
    assert finding.chance == pytest.approx(3 * as_many)
    assert "more uneven" in finding.todo


def test_of_few_images_a_threshold_keeps_nothing_is_claimed():
    """With a thousand classes the ratio would fall to 1 while the labels grow more imbalanced."""
    label = np.repeat(np.arange(1000), 9)
    many = of_threshold(label, np.where(np.arange(9000) % 9 == 0, 0.99, 0.5), 1000)
    few = of_threshold([0, 1] * 60, [0.99] * 99 + [0.5] * 21, 2)
    none = of_threshold([0, 1] * 60, [0.5] * 120, 2)
    assert [one.chance for one in (many, few, none)] == [None] * 3
    assert all("too few" in one.fact for one in (many, few, none))

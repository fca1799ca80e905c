"""Every number of the audit against one computed with plain loops, at 10 and at 1,000 classes."""

import json
import math
import statistics

import numpy as np
import pytest

from debiaspl._measures import Cells, wilson
from debiaspl.predictions import Raw, predictions_from
from debiaspl.report.audit import Audit, audit
from debiaspl.report.audit.findings import findings
from debiaspl.report.audit.page import audit_values
from debiaspl.report.pages import confusion_order, matrix_of
from tests.reference.shares import nearly_empty, total_variation
from tests.report import slow
from tests.report.made import Made, made

SIZES = {10: made(700, 10), 1000: made(1200, 1000)}


def audited(data: Made, strength: float = 0.5, **changes) -> Audit:
    raw = Raw(
        "here",
        {"truth": data.truth, "file_name": np.array(data.names)} | changes.pop("fields", {}),
        changes.pop("matrices", {"logits": data.logits}),
        tuple(data.classes),
    )
    return audit(predictions_from(raw), strength)


AUDITS = {size: audited(data) for size, data in SIZES.items()}


@pytest.mark.parametrize("size", SIZES)
def test_counts_ratio_and_effective_classes(size):
    numbers = AUDITS[size].to_json()
    counts = slow.counts(SIZES[size].label.tolist(), size)
    assert numbers["counts"] == dict(zip(SIZES[size].classes, counts, strict=True))
    assert numbers["imbalance_ratio"] == pytest.approx(slow.imbalance_ratio(counts))
    true = slow.counts(SIZES[size].truth.tolist(), size)
    assert numbers["distance"] == pytest.approx(float(total_variation(counts, true)))
    assert numbers["almost_none"] == nearly_empty(counts, true)
    assert numbers["distance_from"] == "true shares"
    assert numbers["effective_classes"] == pytest.approx(slow.effective_classes(counts))
    assert numbers["never_predicted"] == [f"class {n}" for n, count in enumerate(counts) if count == 0]
    assert numbers["predictions"] == len(SIZES[size].truth)


@pytest.mark.parametrize("size", SIZES)
def test_precision_recall_confusion_and_accuracy(size):
    numbers, data = AUDITS[size].to_json(), SIZES[size]
    truth, label = data.truth.tolist(), data.label.tolist()
    for number in range(0, size, max(size // 50, 1)):
        name = data.classes[number]
        assert numbers["precision"][name] == slow.precision(truth, label, number)
        assert numbers["recall"][name] == slow.recall(truth, label, number)
    cells = Cells.from_json(numbers["confusion"], size)
    assert cells.dense().tolist() == slow.confusion(truth, label, size)
    right = sum(t == one for t, one in zip(truth, label, strict=True))
    assert numbers["accuracy"] == right / len(truth)
    assert numbers["accuracy_interval"] == list(wilson(right, len(truth)))


@pytest.mark.parametrize("size", SIZES)
def test_thresholds(size):
    data = SIZES[size]
    label, confidence, truth = data.label.tolist(), data.confidence.tolist(), data.truth.tolist()
    rows = AUDITS[size].to_json()["thresholds"]
    assert [row["threshold"] for row in rows] == [0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99]
    for row in rows:
        kept = [place for place, value in enumerate(confidence) if value >= row["threshold"]]
        counts = slow.counts([label[place] for place in kept], size)
        assert row["kept"] == len(kept)
        assert row["imbalance_ratio"] == pytest.approx(slow.imbalance_ratio(counts))
        if kept:
            true = slow.counts(truth, size)
            assert row["distance"] == pytest.approx(float(total_variation(counts, true)))
        assert row["never_predicted"] == counts.count(0)
        if kept:
            assert row["largest_times_even"] == pytest.approx(max(counts) * size / len(kept))
            assert row["effective_classes"] == pytest.approx(slow.effective_classes(counts))
            assert row["accuracy"] == pytest.approx(sum(label[p] == truth[p] for p in kept) / len(kept))
        else:
            assert row["accuracy"] is None


@pytest.mark.parametrize("size", SIZES)
def test_calibration(size):
    data = SIZES[size]
    right = (data.label == data.truth).tolist()
    expected = slow.calibration_error(data.confidence.tolist(), right)
    assert AUDITS[size].to_json()["calibration_error"] == pytest.approx(expected, abs=1e-6)
    found = AUDITS[size].calibration
    assert found is not None
    assert sum(item["count"] for item in found["bins"]) == len(right)
    assert found["gap"] == pytest.approx(statistics.fmean(data.confidence) - statistics.fmean(right), abs=1e-6)


@pytest.mark.parametrize(("size", "strength"), [(10, 0.5), (10, 1.0), (1000, 0.5)])
def test_what_debiasing_would_change(size, strength):
    data = SIZES[size]
    found = audited(data, strength).change
    expected = slow.debiased_labels(data.logits.tolist(), strength)
    assert found is not None
    # float32 in training, float64 here: a tie may fall either way.
    assert sum(a != b for a, b in zip(found.label.tolist(), expected, strict=True)) <= 1
    counts = slow.counts(found.label.tolist(), size)
    assert found.shares.counts.tolist() == counts
    moved = [row for row, (a, b) in enumerate(zip(data.label, found.label, strict=True)) if a != b]
    assert sorted(found.rows.tolist()) == moved
    assert found.moved.count.sum() == len(moved)
    assert found.accuracy == pytest.approx(float((found.label == data.truth).mean()))
    assert found.shares.effective_classes > AUDITS[size].shares.effective_classes


def test_probabilities_and_logits_are_debiased_alike():
    data = SIZES[10]
    from_logits = AUDITS[10].change
    from_probabilities = audited(data, matrices={"probabilities": data.probabilities}).change
    assert from_logits is not None
    assert from_probabilities is not None
    np.testing.assert_allclose(from_logits.confidence, from_probabilities.confidence, atol=1e-5)
    assert (from_logits.label == from_probabilities.label).mean() > 0.998


def test_strength_zero_and_an_even_prior_change_nothing():
    assert audited(SIZES[10], strength=0).to_json()["debiased"]["changed"] == 0
    even = np.eye(4, dtype=np.float32)[np.arange(40) % 4] * 3
    found = audit(predictions_from(Raw("here", {}, {"logits": even}))).change
    assert found is not None
    assert len(found.rows) == 0


def test_parts_that_need_what_is_not_there_are_left_out():
    raw = Raw("here", {"label": np.array(["a", "b", "b"], object)})
    found = audit(predictions_from(raw))
    assert not {"thresholds", "accuracy", "calibration_error", "debiased"} & found.to_json().keys()
    assert (found.thresholds, found.cells, found.calibration, found.change) == (None,) * 4
    words = " ".join(finding.fact for finding in findings(found))
    assert "what debiasing would change cannot be computed" in words


def test_truth_that_is_known_of_some_images_only():
    data = SIZES[10]
    truth = data.truth.copy()
    truth[::3] = -1
    found = audited(data, fields={"truth": truth})
    assert found.cells is not None
    known = truth >= 0
    assert found.cells.images == known.sum()
    assert found.cells.accuracy == (data.label == truth)[known].mean()
    assert found.to_json()["confusion"] == slow.confusion(truth.tolist(), data.label.tolist(), 10)
    assert found.to_json()["counts"] == AUDITS[10].to_json()["counts"]  # all images are predicted


@pytest.mark.parametrize(("right", "total"), [(0, 10), (10, 10), (7, 10), (476, 500), (1, 1)])
def test_wilson_solves_its_own_equation(right, total):
    """Its ends are where the share lies 1.96 standard deviations of the true share away."""
    for end in wilson(right, total):
        if 0 < end < 1:
            assert abs(right / total - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / total), rel=1e-5)
        else:
            assert right in (0, total)


def test_confused_classes_stand_together():
    """Three pairs are confused; wherever each class was, the two of a pair end up as neighbours."""
    pairs = [(0, 4), (1, 5), (2, 3)]
    matrix = np.diag(np.full(6, 90))
    for one, other in pairs:
        matrix[one, other] = matrix[other, one] = 10
    order = confusion_order(Cells.of_dense(matrix.tolist()))
    assert sorted(order) == list(range(6))
    for one, other in pairs:
        assert abs(order.index(one) - order.index(other)) == 1
    assert confusion_order(Cells.of_dense([[3, 0], [0, 3]])) == [0, 1]
    assert confusion_order(Cells.of_dense([[3]])) == [0]


def test_a_matrix_of_a_page_is_the_matrix_without_zeros():
    dense = slow.confusion(SIZES[10].truth.tolist(), SIZES[10].label.tolist(), 10)
    drawn = matrix_of(Cells.of_dense(dense))
    again = [[0] * 10 for _ in range(10)]
    for row, cells in enumerate(drawn["rows"]):
        for column, count in zip(cells[::2], cells[1::2], strict=True):
            again[row][column] = count
    assert again == dense
    assert drawn["left_out"] == 0
    bounded = matrix_of(Cells.of_dense(dense), most=5)
    kept = [count for cells in bounded["rows"] for count in cells[1::2]]
    assert sorted(kept, reverse=True) == sorted((c for row in dense for c in row), reverse=True)[:5]
    assert bounded["left_out"] == 700 - sum(kept)


def test_images_to_look_at():
    data, values = SIZES[10], audit_values(AUDITS[10])
    json.dumps(values)
    shown = values["picks"]
    names = AUDITS[10].predictions.name
    surplus = [slow.counts(data.label.tolist(), 10)[n] - slow.counts(data.truth.tolist(), 10)[n] for n in range(10)]
    assert shown["favoured"] == surplus.index(max(surplus))
    own = sorted((float(data.confidence[r]), r) for r in range(700) if data.label[r] == shown["favoured"])
    assert [one["name"] for one in shown["uncertain"]] == [names(row) for _, row in own[:20]]
    wrong = [r for r in range(700) if data.label[r] != data.truth[r]]
    assert shown["mistaken"][0]["name"] == names(max(wrong, key=lambda row: data.confidence[row]))
    assert len(shown["changed"]) == min(60, AUDITS[10].to_json()["debiased"]["changed"])

"""What the audit says in words is true of its numbers."""

import math

import numpy as np
import pytest

from debiaspl.predictions import Raw, predictions_from
from debiaspl.report.audit import audit
from debiaspl.report.audit.findings import Finding, findings
from tests.report import slow
from tests.report.test_audit import AUDITS, SIZES, audited


def test_three_findings_each_with_something_to_do():
    found = findings(AUDITS[10])
    assert len(found) == 3
    data = SIZES[10]
    predicted, true = (slow.counts(values.tolist(), 10) for values in (data.label, data.truth))
    assert f"'class 0' is predicted {predicted[0] / true[0]:.1f} times as often as it occurs" in found[0].fact
    assert "Label a few of its 20 least certain images, shown below." in found[0].todo
    recalls = [slow.recall(data.truth.tolist(), data.label.tolist(), number) or 0 for number in range(10)]
    assert f"'class {recalls.index(min(recalls))}' is recognised least: {100 * min(recalls):.0f} %" in found[1].fact
    after = AUDITS[10].to_json()["debiased"]
    assert f"would change {100 * after['changed'] / 700:.1f} % of the labels" in found[2].fact
    assert all(finding.todo for finding in found)


def test_findings_when_nothing_is_wrong_and_when_debiasing_hurts():
    labels = np.arange(40) % 4
    fair = audit(predictions_from(Raw("here", {"label": labels, "truth": labels})))
    told = findings(fair)
    assert told[0].fact == "No class is favoured: each is predicted as often as it occurs."
    assert told[1].fact == "Every image with a known class is predicted right."
    even = findings(audit(predictions_from(Raw("here", {"label": labels}))))
    assert [finding.fact for finding in even[:2]] == [
        "No class is favoured: all are predicted equally often.",
        "No class is neglected: all are predicted equally often.",
    ]
    # The images themselves are imbalanced and the model is right: evening it out makes it worse.
    truth = np.array([0] * 90 + [1] * 10)
    logits = np.where(truth[:, None] == [0, 1], 0.3, 0.0).astype(np.float32) + np.array([0.2, 0.0], np.float32)
    worse = audit(predictions_from(Raw("here", {"truth": truth}, {"logits": logits})), strength=5.0)
    assert "debiasing makes them worse" in findings(worse)[2].todo


def test_classes_that_are_never_predicted_are_told_with_what_is_known_of_them():
    labels = np.array([0, 1, 0, 1])

    def told(truth: list[int] | None) -> str:
        fields = {"label": labels} | ({} if truth is None else {"truth": np.array(truth)})
        return findings(audit(predictions_from(Raw("here", fields, classes=("a", "b", "c", "d")))))[1].fact

    assert told(None) == "2 of 4 classes are never predicted: 'c', 'd'; not significant, 1 in 3 by chance."
    assert told([0, 1, 2, 3]).endswith("'c', 'd', although 2 images are of them; not significant.")
    assert told([0, 1, 0, 1]).endswith("; no image with a known class is of them.")


def of_threshold(label, confidence, classes: int) -> Finding:
    fields = {"label": np.asarray(label), "confidence": np.asarray(confidence)}
    raw = Raw("here", fields, classes=tuple(str(number) for number in range(classes)))
    return findings(audit(predictions_from(raw)))[2]


def test_a_threshold_that_makes_it_worse_is_told():
    label = np.array([0] * 150 + [1] * 150)
    confidence = np.where(label == 0, 0.99, np.linspace(0.5, 0.96, 300))
    kept = slow.counts([one for one, sure in zip(label.tolist(), confidence, strict=True) if sure >= 0.95], 2)
    told = of_threshold(label, confidence, 2)
    assert told.fact.startswith(f"A threshold of 0.95 keeps {sum(kept)} of 300 images. ")
    assert (
        f"has {2 * max(kept) / sum(kept):.2f} times an even share of these, and 1.00 times of all images;" in told.fact
    )
    assert f"effective classes: {slow.effective_classes(kept):.1f} and 2.0; significant, " in told.fact
    assert "A threshold does not remove the bias" in told.todo


def test_a_threshold_is_told_by_the_class_it_keeps_most_and_its_own_share_before():
    before, kept = (200, 150, 50), (80, 90, 15)
    sure = [
        0.99 if number < most else 0.5 for most, all_of in zip(kept, before, strict=True) for number in range(all_of)
    ]
    told = of_threshold(np.repeat(np.arange(3), before), sure, 3)
    assert f"'1', the class kept most, has {3 * 90 / 185:.2f} times an even share of these, and 1.12" in told.fact
    as_many = sum(math.comb(150, one) * math.comb(250, 185 - one) for one in range(90, 151)) / math.comb(400, 185)
    assert told.chance == pytest.approx(3 * as_many)
    assert "A threshold does not remove the bias" in told.todo


def test_a_threshold_that_evens_out_is_not_blamed():
    label = np.array([0] * 400 + [1] * 100)
    confidence = np.where(np.arange(500) < 300, 0.6, 0.99)
    told = of_threshold(label, confidence, 2)
    assert "'0', the class kept most, has 1.00 times an even share of these, and 1.60 times of all images;" in told.fact
    assert "does not remove the bias" not in told.todo


def test_of_few_images_a_threshold_keeps_nothing_is_claimed():
    """With a thousand classes the ratio would fall to 1 while the labels grow more imbalanced."""
    label = np.repeat(np.arange(1000), 9)
    told = of_threshold(label, np.where(np.arange(9000) % 9 == 0, 0.99, 0.5), 1000)
    assert told.fact == (
        "A threshold of 0.95 keeps 1,000 of 9,000 images, too few to tell how evenly it keeps 1,000 classes."
    )
    few = of_threshold([0, 1] * 60, [0.99] * 99 + [0.5] * 21, 2)
    assert few.fact.startswith("A threshold of 0.95 keeps 99 of 120 images, too few to tell")
    none = of_threshold([0, 1] * 60, [0.5] * 120, 2)
    assert none.fact == "No prediction has a confidence of 0.95."


def test_a_correction_that_changes_nothing_is_told_as_that():
    told = findings(audited(SIZES[10], strength=0))[2]
    assert told.fact.startswith("Debiasing with strength 0 would change none of the 700 labels")
    sure = np.eye(4, dtype=np.float32)[np.arange(40) % 4] * 30
    kept = findings(audit(predictions_from(Raw("here", {}, {"logits": sure}))))[2]
    assert kept.fact.startswith("Debiasing with strength 0.5 would change none of the 40 labels")
    assert "--strength 1." in kept.todo
    assert not any("images that change class" in one.todo for one in (told, kept))


def test_where_some_truth_is_unknown_findings_say_of_how_many_images():
    data = SIZES[10]
    truth = data.truth.copy()
    truth[::3] = -1
    known = int((truth >= 0).sum())
    some = findings(audited(data, fields={"truth": truth}))
    assert all(f"f the {known} images with a known class" in finding.fact for finding in some)
    assert not any("with a known class" in finding.fact for finding in findings(AUDITS[10]))
    fields = {"label": np.array([0, 1, 0, 1]), "truth": np.array([0, 2, 2, -1])}
    never = findings(audit(predictions_from(Raw("here", fields, classes=("a", "b", "c")))))
    assert never[1].fact.endswith("'c', although 2 of the 3 images with a known class are of it; not significant.")
    fair = {"label": np.arange(200) % 2, "truth": np.where(np.arange(200) < 100, np.arange(200) % 2, -1)}
    even = findings(audit(predictions_from(Raw("here", fair, classes=("a", "b")))))
    assert even[0].fact.endswith("as often as it occurs, of the 100 images with a known class.")
    fair["truth"][99] = -1  # too few to tell
    even = findings(audit(predictions_from(Raw("here", fair, classes=("a", "b")))))
    assert even[0].fact == "No class is favoured: all are predicted equally often."


def test_one_is_told_as_one():
    def told(label: list[int], truth: list[int]) -> list[str]:
        fields = {"label": np.array(label), "truth": np.array(truth)}
        return [one.fact for one in findings(audit(predictions_from(Raw("here", fields, classes=("a", "b", "c")))))]

    assert told([0, 1], [0, 0])[0].startswith("'b' is predicted once, and no image is of it; ")
    never = told([0, 1, 0], [2, -1, -1])[1]
    assert never.endswith("'c', although the one image with a known class is of it; not significant.")
    wrong = told([1, 0, 2], [0, -1, -1])[1]
    assert wrong.startswith("Of the one image with a known class, 'a' is recognised least: 0 %")

"""The three findings of an audit, each with the next thing to do.

Which class is predicted too often, which is neglected (never predicted, recognised least or predicted least), and what
a correction would change. Predictions are compared with the true classes where these are known, else with the shares
of the labels, else with even shares. Even shares are an assumption, so then nothing is called a bias.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from debiaspl._measures import (
    LEVEL,
    Cells,
    Finding,
    any_at_least,
    at_least,
    at_most,
    drawn_at_least,
    drawn_at_most,
    mcnemar,
    told,
)
from debiaspl._printable import counted, percent
from debiaspl.report.audit.change import Change
from debiaspl.report.audit.measures import Shares
from debiaspl.report.audit.numbers import Audit

MUCH = 1.2
"""A class predicted this many times as often as expected is called favoured; below the inverse, neglected."""
UNCERTAIN = 20
"""How many of the least certain images of the favoured class a page shows."""
THRESHOLD = 0.95
NOTHING_SHOWN = "No significant difference; more images could show a smaller one."
NONE_STANDS_OUT = "No class stands out. See the confusion matrix for what is mistaken for what."
"""Equal recalls are not necessarily good ones."""
UNKNOWN_SHARES = (
    "Add the true classes of some images as a column (--column truth=NAME): they show whether this is a bias."
)
TRUTH, LABELS, EVEN = "truth", "labels", "even"


def findings(audit: Audit, where: str = "below") -> list[Finding]:
    """Which class is favoured, which is neglected, and what a correction would change.

    ``where`` says where the images are shown.
    """
    return [_most(audit, where), _least(audit), _correction(audit, where)]


@dataclass(frozen=True)
class Favoured:
    """A class with more predictions than expected."""

    number: int
    times: float
    """Predictions over what is expected; infinite where nothing is."""
    chance: float
    """How often chance alone would favour any class as much."""
    by: str
    """What is expected: its true images, the share of its labels, or an even share."""

    @property
    def holds(self) -> bool:
        """Whether the class is favoured much, and significantly."""
        return self.times >= MUCH and self.chance <= LEVEL


def favoured(audit: Audit) -> Favoured:
    """The class with the most surplus predictions; one that is favoured significantly comes first.

    Where few true classes are known and show nothing, the predictions of all images are tested too."""
    tests = 2 if audit.few_known else 1
    if audit.cells is not None:
        by_truth = _against_truth(audit.cells, tests)
        if by_truth.holds or not audit.few_known:
            return by_truth
    labels = _label_counts(audit)
    if labels is None:
        return _against_even(audit, tests)
    by_labels = _against_labels(audit, labels, tests)
    enough = by_labels.holds or audit.predictions.label_counts is not None
    return by_labels if enough else _against_even(audit, tests)


def _label_counts(audit: Audit) -> NDArray[np.int64] | None:
    """Labels of each class; None where as many were chosen of each, which says nothing about the images."""
    labels = audit.predictions.label_counts
    if labels is None and audit.few_known and audit.cells is not None:
        labels = audit.cells.of_true
    return None if labels is None or len(set(labels.tolist())) == 1 else labels


def _against_even(audit: Audit, tests: int) -> Favoured:
    counts, classes = audit.shares.counts, len(audit.classes)
    number = int(counts.argmax())
    chance = tests * classes * at_least(int(counts[number]), int(counts.sum()), 1 / classes)
    return Favoured(number, float(audit.shares.times_even[number]), min(1.0, chance), EVEN)


def _against_labels(audit: Audit, labels: NDArray[np.int64], tests: int) -> Favoured:
    """Fisher's exact test of predictions against labels, both drawn from the same images."""
    counts = audit.shares.counts
    expected = labels * (counts.sum() / labels.sum())
    number = int((counts - expected).argmax())
    predicted, both = int(counts[number]), int(counts[number] + labels[number])
    chance = drawn_at_least(predicted, int(counts.sum()), both, int(counts.sum() + labels.sum()))
    times = predicted / float(expected[number]) if expected[number] else float("inf")
    return Favoured(number, times, min(1.0, tests * len(counts) * chance), LABELS)


def _against_truth(cells: Cells, tests: int) -> Favoured:
    """A sign test: for a class that is not favoured, as many images are wrongly given to it as are wrongly taken from
    it, up to chance."""
    predicted, true, right = (counts.tolist() for counts in (cells.of_predicted, cells.of_true, cells.right))
    tested = max(sum(one + other > 2 * both for one, other, both in zip(predicted, true, right, strict=True)), 1)

    def favoured_by(number: int) -> Favoured:
        chance = tests * tested * mcnemar(predicted[number] - right[number], true[number] - right[number], sides=1)
        times = predicted[number] / true[number] if true[number] else float("inf") if predicted[number] else 0.0
        return Favoured(number, times, min(1.0, chance), TRUTH)

    order = np.argsort(cells.of_true - cells.of_predicted, kind="stable").tolist()
    too_often = (favoured_by(number) for number in order if predicted[number] > true[number])
    much = [one for one in too_often if one.times >= MUCH]
    return next((one for one in much if one.holds), much[0] if much else favoured_by(order[0]))


def _most(audit: Audit, where: str) -> Finding:
    most = favoured(audit)
    name, count, total = _quoted(audit, most.number), int(audit.shares.counts[most.number]), len(audit.predictions)
    if most.times < MUCH:
        todo = "Look at the classes with the lowest recall instead." if most.by == TRUTH else "Nothing to do here."
        among = _known(audit, ", of {}") if most.by == TRUTH else ""
        return Finding(f"No class is predicted much too often{among}.", todo, "counts")
    if most.by == EVEN:
        fact = f"{name} is predicted {most.times:.1f} times as often as an even share ({count:,} of {total:,} images)"
        return Finding(f"{fact}; {_if_even(most.chance)}.", UNKNOWN_SHARES, "counts", most.chance)
    if most.by == LABELS:
        fact = f"{name} is predicted {most.times:.1f} times as often as its share of the labels ({count:,} of {total:,}"
        fact += " images)"
    else:
        assert audit.cells is not None
        predicted, true = int(audit.cells.of_predicted[most.number]), int(audit.cells.of_true[most.number])
        fact = f"predicted {most.times:.1f} times as often as it occurs ({predicted:,} and {true:,} images)"
        if not true:
            fact = f"predicted for {counted(predicted, 'image')}, and no image is of it"
        fact = f"{_known(audit, 'Of {}, ')}{name} is {fact}"
    fact = f"{fact}; {told(most.chance)}."
    if not most.holds:
        return Finding(fact, NOTHING_SHOWN, "counts", most.chance)
    if audit.predictions.confidence is None:
        todo = f"Label a few of its images. With confidences in the file, the least certain ones are shown {where}."
        return Finding(fact, todo, "counts", most.chance)
    return Finding(
        fact,
        f"Label a few of its {min(UNCERTAIN, count)} least certain images, shown {where}.",
        "uncertain",
        most.chance,
    )


def _least(audit: Audit) -> Finding:
    """The first significant finding, else the first one."""
    tests = (audit.shares.never != []) + (audit.cells is not None)
    options = [_never(audit, tests)] if audit.shares.never else []
    options += [] if audit.cells is None else [_least_recognised(audit, audit.cells, tests)]
    options = options or [_least_predicted(audit)]
    return next((one for one in options if one.chance is not None and one.chance <= LEVEL), options[0])


def _never(audit: Audit, tests: int) -> Finding:
    """Classes without a prediction. The advice depends on whether there are images of them."""
    never, cells = audit.shares.never, audit.cells
    some = ", ".join(_quoted(audit, number) for number in never[:3])
    more = f" and {len(never) - 3:,} more" if len(never) > 3 else ""
    fact = f"{len(never):,} of {len(audit.classes):,} classes never predicted: {some}{more}"
    images = 0 if cells is None else int(cells.of_true[never].sum())
    if cells is None or (images == 0 and audit.few_known):
        classes, total = len(audit.classes), len(audit.predictions)
        # Classes are treated as independent. An empty class fills the others, so this is an upper bound.
        chance = min(1.0, tests * any_at_least(len(never), [float(1 - 1 / classes) ** total] * classes))
        return Finding(
            f"{fact}; {_if_even(chance)}.",
            "Check that there are images of them and that the names are right; then label a few.",
            "counts",
            chance,
        )
    if images == 0:
        return Finding(f"{fact}; no image with a known class is of them.", "Nothing to do here.", "counts")
    true, known = cells.of_true, cells.images
    empty = (1 - true[true > 0] / (known + 1)) ** known  # one image is added, so that no share is 1
    chance = min(1.0, tests * any_at_least(int(np.count_nonzero(true[never])), empty.tolist()))
    return Finding(
        f"{fact}, although {counted(images, 'image')} of {known:,} with a known class belong there; {told(chance)}.",
        "See what they are mistaken for, and label a few of them." if chance <= LEVEL else NOTHING_SHOWN,
        "confusion",
        chance,
    )


def _least_recognised(audit: Audit, cells: Cells, tests: int) -> Finding:
    """A hypergeometric test against equal recalls: the right images of a class are drawn from all right images."""
    recall = [1.0 if value is None else value for value in cells.recall]
    true, right, known, accuracy = cells.of_true, cells.right, cells.images, cells.accuracy
    tested, all_right = tests * int(np.count_nonzero(true)), int(right.sum())

    def chance_of(number: int) -> float:
        return min(1.0, tested * drawn_at_most(int(right[number]), int(true[number]), all_right, known))

    lowest = int(np.argmin(recall))
    if recall[lowest] == 1:
        return Finding("Every image with a known class is predicted right.", "Nothing to do here.", "truth")
    below = [int(number) for number in np.argsort(recall, kind="stable") if recall[number] < accuracy]
    worst = next((number for number in below if chance_of(number) <= LEVEL), lowest)
    chance, name = chance_of(worst), _quoted(audit, worst)
    least = "least" if recall[worst] == recall[lowest] else "less than others"
    fact = (
        f"{_known(audit, 'Of {}, ')}{name} is recognised {least}: {percent(recall[worst])} of its images, "
        f"{percent(accuracy)} of all; {told(chance)}"
    )
    other, share = _taken_for(cells, worst)
    todo = f"Look at the images of {name} that are predicted wrong, and label a few."
    if other is not None:
        taken = _quoted(audit, other)
        fact += f". {percent(share)} of them are mistaken for {taken}"
        todo = f"Look at images of {name} and {taken} side by side, and label a few of both."
    return Finding(f"{fact}.", todo if chance <= LEVEL else NONE_STANDS_OUT, "confusion", chance)


def _taken_for(cells: Cells, worst: int) -> tuple[int | None, float]:
    """The class that its images are most often mistaken for, and their share; None where that is not significant."""
    (other, count), wrong, others = (
        cells.taken_for()[worst],
        int((cells.of_true - cells.right)[worst]),
        cells.classes - 1,
    )
    if others > 1 and others * at_least(count, wrong, 1 / others) > LEVEL:
        return None, 0.0
    return other, count / int(cells.of_true[worst])


def _least_predicted(audit: Audit) -> Finding:
    counts, classes = audit.shares.counts, len(audit.classes)
    least = int(counts.argmin())
    times = float(audit.shares.times_even[least])
    if times * MUCH > 1:
        return Finding("No class is predicted much less often than an even share.", "Nothing to do here.", "counts")
    chance = min(1.0, classes * at_most(int(counts[least]), len(audit.predictions), 1 / classes))
    fact = f"{_quoted(audit, least)} is predicted least, {times:.2f} times as often as an even share"
    return Finding(f"{fact}; {_if_even(chance)}.", UNKNOWN_SHARES, "counts", chance)


def _correction(audit: Audit, where: str) -> Finding:
    """What debiasing would change, or, where only confidences are known, what a threshold does."""
    after, count = audit.change, len(audit.predictions)
    if after is None:
        return _threshold(audit)
    if not len(after.rows):
        todo = f"To try a larger strength: --strength {2 * after.strength or 0.5:g}."
        fact = f"Debiasing with strength {after.strength:g} would change none of the {count:,} labels."
        return Finding(fact, todo, "change")
    shares = audit.shares.reference if audit.shares.true is None else f"the {audit.shares.reference}"
    fact = (
        f"Debiasing with strength {after.strength:g} would change {len(after.rows):,} of the {count:,} labels. "
        f"{percent(audit.shares.distance or 0.0, 1)} of them would have to change class to match {shares}, "
        f"{percent(after.shares.distance or 0.0, 1)} after debiasing"
    )
    look = f"Look at the images that change class, shown {where}. If their new labels are better, use debiasing."
    if audit.predictions.truth is not None and audit.cells is not None:
        return _by_accuracy(audit, audit.predictions.truth, audit.cells.accuracy, after, fact, look)
    chance = chance_of_imbalance(audit.shares)
    todo = look if chance <= LEVEL else "Keep these labels: they are as even as chance allows."
    return Finding(f"{fact}. These labels are {'un' if chance <= LEVEL else 'not un'}even.", todo, "change", chance)


def _by_accuracy(audit: Audit, truth: NDArray[np.int64], before: float, after: Change, fact: str, look: str) -> Finding:
    """By true classes: images that become right against images that become wrong."""
    right, was_right = after.label == truth, audit.predictions.label == truth
    better, worse = int(np.count_nonzero(right & ~was_right)), int(np.count_nonzero(was_right & ~right))
    chance = mcnemar(better, worse)
    fact += (
        f"; accuracy from {percent(before, 1)} to {percent(after.accuracy or 0.0, 1)}{_known(audit, ', of {}')} "
        f"({better:,} more right, {worse:,} more wrong; {told(chance)})."
    )
    if better == worse or chance > LEVEL:
        return Finding(fact, look, "change", chance)
    todo = "Keep these labels, or try a smaller --strength: debiasing makes them worse."
    return Finding(fact, "Use debiasing: these labels get better." if better > worse else todo, "change", chance)


def chance_of_imbalance(shares: Shares) -> float:
    """The probability that some class is predicted as often as the most frequent one, or as rarely as the rarest, where
    all shares are even."""
    classes, total = len(shares.counts), int(shares.counts.sum())
    most = at_least(int(shares.counts.max()), total, 1 / classes)
    return min(1.0, 2 * classes * min(most, at_most(int(shares.counts.min()), total, 1 / classes)))


def _threshold(audit: Audit) -> Finding:
    """What a threshold does, for files without scores of every class, where debiasing cannot be tried."""
    save = "Save the probabilities or logits of every class too, to see what debiasing would change."
    if audit.thresholds is None:
        fact = "The file has labels only, so what debiasing would change cannot be computed."
        return Finding(fact, save, "change")
    strict = next(row for row in audit.thresholds if row.threshold == THRESHOLD)
    fact = f"A threshold of {THRESHOLD} keeps {strict.kept:,} of {len(audit.predictions):,} images"
    if strict.kept < audit.enough:  # with fewer images, the number of effective classes falls anyway
        few = f"{fact}, too few to tell how evenly it keeps {len(audit.classes):,} classes."
        return Finding(few, save, "thresholds")
    before, after = audit.shares, strict.shares
    most = int(after.counts.argmax())
    was, now = (float(shares.times_even[most]) for shares in (before, after))
    fact += (
        f". {_quoted(audit, most)}, the class kept most, has {now:.2f} times an even share of these, and {was:.2f} "
        "times of all images"
    )
    if now <= was or after.effective_classes >= before.effective_classes:
        return Finding(f"{fact}.", save, "thresholds")
    kept = drawn_at_least(int(after.counts[most]), strict.kept, int(before.counts[most]), int(before.counts.sum()))
    chance = min(1.0, len(after.counts) * kept)
    todo = f"A threshold makes these labels more uneven. {save}" if chance <= LEVEL else save
    return Finding(f"{fact}; {told(chance)}.", todo, "thresholds", chance)


def _if_even(chance: float) -> str:
    """What chance says where nothing but even shares is there to compare with."""
    if chance <= LEVEL:
        return "uneven, which is a bias only if the images are evenly spread over the classes"
    return "chance alone may do this"


def _known(audit: Audit, form: str) -> str:
    """How many images have a known class, where these are not all."""
    if audit.cells is None or audit.cells.images == len(audit.predictions):
        return ""
    return form.format(f"{counted(audit.cells.images, 'image')} with a known class")


def _quoted(audit: Audit, number: int) -> str:
    """The name of a class, not too long."""
    name = audit.classes[number]
    return f"'{name if len(name) <= 60 else name[:59] + '…'}'"

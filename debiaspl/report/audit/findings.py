"""The findings of an audit, each with the next thing to do: which class is predicted too often, which is neglected
(never predicted, recognised least or predicted least), and what a correction would change.

Predictions are compared with the true classes where enough are known, else with the shares of the labels, else with
even shares. Even shares are an assumption, so then nothing is called a bias.
"""

import math
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
from debiaspl.predictions.table import listed
from debiaspl.report.audit.measures import Change, Shares
from debiaspl.report.audit.numbers import Audit
from debiaspl.report.pages import short_name

MUCH = 1.2
"""A class predicted this many times as often as expected is called favoured; below the inverse, neglected."""
UNCERTAIN = 20
"""How many of the least certain images of the favoured class a page shows."""
NOTHING_SHOWN = "No significant difference; more images could show a smaller one."
NONE_STANDS_OUT = "No class stands out. See the confusion matrix for what is mistaken for what."
"""Equal recalls are not necessarily good ones."""
LOOK = "Look at the images that change class. If their new labels are better, use debiasing."
TRUTH, LABELS, EVEN = "truth", "labels", "even"


def findings(audit: Audit) -> list[Finding]:
    return [_most(audit), _least(audit), _correction(audit)]


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
    """The class with the most surplus predictions; one that is favoured significantly comes first."""
    labels = audit.predictions.label_counts
    if audit.truth is not None:
        return _against_truth(audit.truth)
    if labels is None or len(set(labels.tolist())) == 1:  # as many chosen of each say nothing about the images
        counts, classes = audit.shares.counts, len(audit.classes)
        number = int(counts.argmax())
        chance = classes * at_least(int(counts[number]), int(counts.sum()), 1 / classes)
        return Favoured(number, float(audit.shares.times_even[number]), min(1.0, chance), EVEN)
    return _against_labels(audit, labels)


def _against_labels(audit: Audit, labels: NDArray[np.int64]) -> Favoured:
    """Fisher's exact test of predictions against labels, both drawn from the same images."""
    counts = audit.shares.counts
    expected = labels * (counts.sum() / labels.sum())
    number = int((counts - expected).argmax())
    predicted, both = int(counts[number]), int(counts[number] + labels[number])
    chance = drawn_at_least(predicted, int(counts.sum()), both, int(counts.sum() + labels.sum()))
    times = predicted / float(expected[number]) if expected[number] else float("inf")
    return Favoured(number, times, min(1.0, len(counts) * chance), LABELS)


def _against_truth(cells: Cells) -> Favoured:
    """A sign test: for a class that is not favoured, as many images are wrongly given to it as are wrongly taken from
    it, up to chance."""
    predicted, true, right = (counts.tolist() for counts in (cells.of_predicted, cells.of_true, cells.right))
    tested = max(sum(one + other > 2 * both for one, other, both in zip(predicted, true, right, strict=True)), 1)

    def favoured_by(number: int) -> Favoured:
        chance = tested * mcnemar(predicted[number] - right[number], true[number] - right[number], sides=1)
        times = predicted[number] / true[number] if true[number] else float("inf") if predicted[number] else 0.0
        return Favoured(number, times, min(1.0, chance), TRUTH)

    order = np.argsort(cells.of_true - cells.of_predicted, kind="stable").tolist()
    too_often = (favoured_by(number) for number in order if predicted[number] > true[number])
    much = [one for one in too_often if one.times >= MUCH]
    return next((one for one in much if one.holds), much[0] if much else favoured_by(order[0]))


def _most(audit: Audit) -> Finding:
    most = favoured(audit)
    name, count, total = _quoted(audit, most.number), int(audit.shares.counts[most.number]), len(audit.predictions)
    if most.times < MUCH:
        todo = "Look at the classes with the lowest recall instead." if most.by == TRUTH else "Nothing to do here."
        among = _known(audit, ", of {}") if most.by == TRUTH else ""
        return Finding(f"No class is predicted much too often{among}.", todo, "counts")
    often = f"{most.times:.1f} times as often as" if math.isfinite(most.times) else "more often than"
    fact = f"{name} is predicted {often}"
    if most.by == EVEN:
        fact += f" an even share ({count:,} of {total:,} images); {_if_even(most.chance)}."
        return Finding(fact, _add_truth(audit), "counts", most.chance)
    if audit.truth is None:
        fact += f" its share of the labels ({count:,} of {total:,} images); {told(most.chance)}."
    else:
        predicted, true = audit.truth.of_predicted[most.number], audit.truth.of_true[most.number]
        fact = f"{_known(audit, 'Of {}, ')}{fact} it occurs ({predicted:,} and {true:,} images); {told(most.chance)}."
    if not most.holds:
        return Finding(fact, NOTHING_SHOWN, "counts", most.chance)
    if audit.predictions.confidence is None:
        todo = "Label a few of its images. With confidences in the file, the least certain ones are shown."
        return Finding(fact, todo, "counts", most.chance)
    todo = f"Label a few of its {min(UNCERTAIN, count)} least certain images."
    return Finding(fact, todo, "uncertain", most.chance)


def _least(audit: Audit) -> Finding:
    """The first significant finding, else the first one."""
    tests = (audit.shares.never != []) + (audit.truth is not None)
    options = [_never(audit, tests)] if audit.shares.never else []
    options += [] if audit.truth is None else [_least_recognised(audit, audit.truth, tests)]
    options = options or [_least_predicted(audit)]
    return next((one for one in options if one.chance is not None and one.chance <= LEVEL), options[0])


def _never(audit: Audit, tests: int) -> Finding:
    """Classes without a prediction. The advice depends on whether there are images of them."""
    never, cells = audit.shares.never, audit.truth
    classes, total = len(audit.classes), len(audit.predictions)
    some = listed([short_name(audit.classes[number]) for number in never], 3)
    fact = f"{len(never):,} of {classes:,} classes never predicted: {some}"
    if cells is None:
        # Classes are treated as independent. An empty class fills the others, so this is an upper bound.
        chance = min(1.0, tests * any_at_least(len(never), [float(1 - 1 / classes) ** total] * classes))
        return Finding(
            f"{fact}; {_if_even(chance)}.",
            "Check that there are images of them and that the names are right; then label a few.",
            "counts",
            chance,
        )
    images = int(cells.of_true[never].sum())
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
    true, right, accuracy = cells.of_true, cells.right, cells.accuracy
    tested, all_right = tests * int(np.count_nonzero(true)), int(right.sum())

    def chance_of(number: int) -> float:
        return min(1.0, tested * drawn_at_most(int(right[number]), int(true[number]), all_right, cells.images))

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
    other, count = cells.taken_for()[worst]
    wrong, others = int((cells.of_true - cells.right)[worst]), cells.classes - 1
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
    return Finding(f"{fact}; {_if_even(chance)}.", _add_truth(audit), "counts", chance)


def _correction(audit: Audit) -> Finding:
    after, count = audit.change, len(audit.predictions)
    if after is None:
        fact = "The file has no scores of every class, so what debiasing would change cannot be computed."
        return Finding(fact, "Save the probabilities or logits of every class too.", "change")
    if not len(after.rows):
        todo = f"To try a larger strength: --strength {2 * after.strength or 0.5:g}."
        fact = f"Debiasing with strength {after.strength:g} would change none of the {count:,} labels."
        return Finding(fact, todo, "change")
    fact = (
        f"Debiasing with strength {after.strength:g} would change {len(after.rows):,} of the {count:,} labels. "
        f"{percent(audit.shares.distance or 0.0, 1)} of them would have to change class to match "
        f"{audit.shares.reference}, {percent(after.shares.distance or 0.0, 1)} after debiasing"
    )
    if audit.cells is not None:
        return _by_accuracy(audit, audit.cells.accuracy, after, fact)
    chance = chance_of_imbalance(audit.shares)
    todo = LOOK if chance <= LEVEL else "Keep these labels: they are as even as chance allows."
    return Finding(f"{fact}. These labels are {'un' if chance <= LEVEL else 'not un'}even.", todo, "change", chance)


def _by_accuracy(audit: Audit, before: float, after: Change, fact: str) -> Finding:
    """By true classes: images that become right against images that become wrong."""
    right, was_right = (one.label == audit.predictions.truth for one in (after, audit.predictions))
    better, worse = int(np.count_nonzero(right & ~was_right)), int(np.count_nonzero(was_right & ~right))
    chance = mcnemar(better, worse)
    fact += (
        f"; accuracy from {percent(before, 1)} to {percent(after.accuracy or 0.0, 1)}{_known(audit, ', of {}')} "
        f"({better:,} more right, {worse:,} more wrong; {told(chance)})."
    )
    if better == worse or chance > LEVEL:
        return Finding(fact, LOOK, "change", chance)
    todo = "Keep these labels, or try a smaller --strength: debiasing makes them worse."
    return Finding(fact, "Use debiasing: these labels get better." if better > worse else todo, "change", chance)


def chance_of_imbalance(shares: Shares) -> float:
    """The probability that some class is predicted as often as the most frequent one, or as rarely as the rarest, where
    all shares are even."""
    classes, total = len(shares.counts), int(shares.counts.sum())
    most = at_least(int(shares.counts.max()), total, 1 / classes)
    return min(1.0, 2 * classes * min(most, at_most(int(shares.counts.min()), total, 1 / classes)))


def _add_truth(audit: Audit) -> str:
    """The advice where nothing but even shares is there to compare with."""
    column = f"Add the true classes of {counted(audit.enough, 'image')} as a column (--column truth=NAME)"
    return f"{column}: they show whether this is a bias."


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
    return f"'{short_name(audit.classes[number])}'"

"""The three findings of an audit in plain words, each with the next thing to do.

Which class is predicted too often, which is neglected (never predicted, recognised least or predicted least), and what
a correction would change. A finding gives advice only where it is significant (``debiaspl.report.chance``), and says
so where it is not.
"""

from dataclasses import dataclass

import numpy as np

from debiaspl.report.audit.correcting import correction_finding
from debiaspl.report.audit.measures import Agreement
from debiaspl.report.audit.numbers import Audit
from debiaspl.report.audit.words import (
    NOTHING_SHOWN,
    among_known,
    images_known,
    of_known,
    percent,
    quoted,
    shares_told,
    times,
)
from debiaspl.report.chance import LEVEL, Finding, any_at_least, at_least, at_most, drawn_at_most, flipped, told

__all__ = ["Favoured", "Finding", "favoured", "findings"]

MUCH = 1.2
"""A class predicted this many times as often as expected is called favoured; below the inverse, neglected."""
UNCERTAIN = 20
"""How many of the least certain images of the favoured class a page shows."""
NONE_STANDS_OUT = "No class stands out. See the confusion matrix for what is mistaken for what."
"""Equal recalls are not necessarily good ones."""


def findings(audit: Audit, where: str = "below") -> list[Finding]:
    """Which class is favoured, which is neglected, and what a correction would change.

    ``where`` says where the images are shown.
    """
    return [_favoured(audit, where), _neglected(audit), correction_finding(audit, where)]


@dataclass(frozen=True)
class Favoured:
    """A class with more predictions than expected: than its true images if they are known, else than an even share."""

    number: int
    times: float
    """Predictions over what is expected; infinite where nothing is."""
    chance: float
    """How often chance alone would favour any class as much."""
    by_truth: bool

    @property
    def holds(self) -> bool:
        """Whether the class is favoured much, and significantly."""
        return self.times >= MUCH and self.chance <= LEVEL


def favoured(audit: Audit) -> Favoured:
    """The class with the most surplus predictions; one that is favoured significantly comes first.

    Where few true classes are known and show nothing, the predictions of all images are tested too."""
    looks = 2 if audit.few_known else 1
    if audit.agreement is not None:
        by_truth = _against_truth(audit.agreement, looks)
        if by_truth.holds or not audit.few_known:
            return by_truth
    return _against_even(audit, looks)


def _against_even(audit: Audit, looks: int) -> Favoured:
    number, classes = int(audit.shares.counts.argmax()), len(audit.classes)
    chance = looks * classes * at_least(int(audit.shares.counts[number]), len(audit.predictions), 1 / classes)
    return Favoured(number, float(audit.shares.times_even[number]), min(1.0, chance), by_truth=False)


def _against_truth(found: Agreement, looks: int) -> Favoured:
    """A sign test: for a class that is not favoured, as many images are wrongly given to it as are wrongly taken from
    it, up to chance."""
    cells = found.cells
    predicted, true, right = (counts.tolist() for counts in (cells.of_predicted, cells.of_true, cells.right))
    looked_at = max(sum(one + other > 2 * both for one, other, both in zip(predicted, true, right, strict=True)), 1)

    def favoured_by(number: int) -> Favoured:
        chance = looks * looked_at * flipped(predicted[number] - right[number], true[number] - right[number])
        times = predicted[number] / true[number] if true[number] else float("inf") if predicted[number] else 0.0
        return Favoured(number, times, min(1.0, chance), by_truth=True)

    order = np.argsort(cells.of_true - cells.of_predicted, kind="stable").tolist()
    too_often = (favoured_by(number) for number in order if predicted[number] > true[number])
    much = [one for one in too_often if one.times >= MUCH]
    return next((one for one in much if one.holds), much[0] if much else favoured_by(order[0]))


def _favoured(audit: Audit, where: str) -> Finding:
    most = favoured(audit)
    name = quoted(audit, most.number)
    if most.times < MUCH:
        measure = f"as it occurs{among_known(audit)}" if most.by_truth else "as an even share"
        fact = f"No class is favoured much. The most favoured, {name}, is predicted {most.times:.1f} times as often "
        if most.by_truth and audit.agreement is not None and _no_surplus(audit.agreement):
            fact = "No class is favoured: each is predicted as often "
        elif not most.by_truth and _all_equal(audit):
            fact, measure = "No class is favoured: all are predicted ", "equally often"
        return Finding(
            f"{fact}{measure}.",
            "Look at the classes with the lowest recall instead." if most.by_truth else "Nothing to do here.",
            "counts",
        )
    fact = f"{_how_often(audit, most)}; {told(most.chance)}."
    if not most.holds:
        return Finding(fact, NOTHING_SHOWN, "counts", most.chance)
    if audit.predictions.confidence is None:
        todo = f"Label a few of its images. With confidences in the file, the least certain ones are shown {where}."
        return Finding(fact, todo, "counts", most.chance)
    shown = min(UNCERTAIN, int(audit.shares.counts[most.number]))
    return Finding(fact, f"Label a few of its {shown} least certain images, shown {where}.", "uncertain", most.chance)


def _all_equal(audit: Audit) -> bool:
    return len(set(audit.shares.counts.tolist())) == 1


def _no_surplus(found: Agreement) -> bool:
    return bool((found.cells.of_predicted == found.cells.of_true).all())


def _how_often(audit: Audit, most: Favoured) -> str:
    name, count, total = quoted(audit, most.number), int(audit.shares.counts[most.number]), len(audit.predictions)
    if not most.by_truth:
        return f"{name} is predicted {most.times:.1f} times as often as an even share ({count:,} of {total:,} images)"
    assert audit.agreement is not None
    cells = audit.agreement.cells
    predicted, true = int(cells.of_predicted[most.number]), int(cells.of_true[most.number])
    if not true:
        return f"{of_known(audit)}{name} is predicted {times(predicted)}, and no image is of it"
    return (
        f"{of_known(audit)}{name} is predicted {most.times:.1f} times as often as it occurs "
        f"({times(predicted)}; {true:,} {'is' if true == 1 else 'are'} true)"
    )


def _neglected(audit: Audit) -> Finding:
    """The first significant finding, else the first one."""
    found = audit.agreement
    looks = (audit.shares.never != []) + (found is not None)
    options = [_never(audit, looks)] if audit.shares.never else []
    options += [] if found is None else [_least_recognised(audit, found, looks)]
    options = options or [_least_predicted(audit)]
    return next((one for one in options if one.chance is not None and one.chance <= LEVEL), options[0])


def _never(audit: Audit, looks: int) -> Finding:
    """Classes without a prediction. The advice depends on whether there are images of them."""
    never = audit.shares.never
    some = ", ".join(quoted(audit, number) for number in never[:3])
    more = f" and {len(never) - 3:,} more" if len(never) > 3 else ""
    verb, them = ("is", "it") if len(never) == 1 else ("are", "them")
    fact = f"{len(never):,} of {len(audit.classes):,} classes {verb} never predicted: {some}{more}"
    found = audit.agreement
    images = 0 if found is None else int(found.cells.of_true[never].sum())
    if found is None or (images == 0 and audit.few_known):
        chance = min(1.0, looks * _chance_of_never_evenly(audit))
        todo = f"Check that there are images of {them} and that the names are right; then label a few."
        return Finding(f"{fact}; {told(chance)}.", todo if chance <= LEVEL else NOTHING_SHOWN, "counts", chance)
    if images == 0:
        return Finding(f"{fact}; no image with a known class is of {them}.", "No significant bias found.", "counts")
    chance = min(1.0, looks * _chance_of_never(found, never))
    return Finding(
        f"{fact}, although {images_known(audit, images)} of {them}; {told(chance)}.",
        "See what they are mistaken for, and label a few of them." if chance <= LEVEL else NOTHING_SHOWN,
        "confusion",
        chance,
    )


def _chance_of_never_evenly(audit: Audit) -> float:
    """How often as many classes get no prediction where all are predicted evenly.

    Classes are treated as independent. In fact an empty class fills the others, so this is an upper bound."""
    classes, total = len(audit.classes), len(audit.predictions)
    return any_at_least(len(audit.shares.never), [float(1 - 1 / classes) ** total] * classes)


def _chance_of_never(found: Agreement, never: list[int]) -> float:
    """The same where each is predicted as often as it occurs. One image is added, so that no share is 1."""
    true, known = found.cells.of_true, found.known
    empty = (1 - true[true > 0] / (known + 1)) ** known
    return any_at_least(int(np.count_nonzero(true[never])), empty.tolist())


def _least_recognised(audit: Audit, found: Agreement, looks: int) -> Finding:
    """A hypergeometric test against equal recalls: the right images of a class are drawn from all right images."""
    recall = [1.0 if value is None else value for value in found.recall]
    true, right = found.cells.of_true, found.cells.right
    looked_at, all_right = looks * int(np.count_nonzero(true)), int(right.sum())

    def chance_of(number: int) -> float:
        return min(1.0, looked_at * drawn_at_most(int(right[number]), int(true[number]), all_right, found.known))

    lowest = int(np.argmin(recall))
    below = [int(number) for number in np.argsort(recall, kind="stable") if recall[number] < found.accuracy]
    worst = next((number for number in below if chance_of(number) <= LEVEL), lowest)
    least = "least" if recall[worst] == recall[lowest] else "less than others"
    if recall[worst] == 1:
        return Finding("Every image with a known class is predicted right.", "Nothing to do here.", "truth")
    fact = f"{of_known(audit)}{quoted(audit, worst)} is recognised {least}: {percent(recall[worst])} of its images"
    chance = chance_of(worst)
    fact += f", {percent(found.accuracy)} of all; {told(chance)}"
    other, share = _taken_for(audit, found, worst)
    if other is None:
        todo = f"Look at the images of {quoted(audit, worst)} that are predicted wrong, and label a few."
    else:
        taken = quoted(audit, other)
        fact += f". {percent(share)} of them are mistaken for {taken}"
        todo = f"Look at images of {quoted(audit, worst)} and {taken} side by side, and label a few of both."
    return Finding(f"{fact}.", todo if chance <= LEVEL else NONE_STANDS_OUT, "confusion", chance)


def _taken_for(audit: Audit, found: Agreement, worst: int) -> tuple[int | None, float]:
    """The class that its images are most often mistaken for, and their share; None where that is not significant."""
    mistakes = found.cells.mistakes()
    own = np.flatnonzero(mistakes.true == worst)
    count, wrong, others = int(mistakes.count[own[0]]), int(mistakes.count[own].sum()), len(audit.classes) - 1
    if others > 1 and others * at_least(count, wrong, 1 / others) > LEVEL:
        return None, 0.0
    return int(mistakes.predicted[own[0]]), count / int(found.cells.of_true[worst])


def _least_predicted(audit: Audit) -> Finding:
    least, classes = int(audit.shares.counts.argmin()), len(audit.classes)
    name, times = quoted(audit, least), float(audit.shares.times_even[least])
    chance = min(1.0, classes * at_most(int(audit.shares.counts[least]), len(audit.predictions), 1 / classes))
    off = audit.shares.distance
    assert off is not None
    if _all_equal(audit):
        return Finding("No class is neglected: all are predicted equally often.", "Nothing to do here.", "counts")
    fact = (
        f"{name} is predicted least, {times:.2f} times as often as an even share; {percent(off)} of all predictions "
        f"would have to change class to match {shares_told(audit)}"
    )
    if times * MUCH > 1:
        return Finding(f"No class is neglected much: {fact}.", "Nothing to do here.", "counts")
    todo = f"Label a few images of {name}, and add their true classes as a column: --truth-column."
    return Finding(f"{fact}; {told(chance)}.", todo if chance <= LEVEL else NOTHING_SHOWN, "counts", chance)

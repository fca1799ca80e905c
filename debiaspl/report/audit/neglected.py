"""Which class is neglected: never predicted, recognised least or predicted least."""

import numpy as np

from debiaspl.report.audit.favoured import MUCH
from debiaspl.report.audit.numbers import Audit
from debiaspl.report.audit.truth import Agreement
from debiaspl.report.audit.words import NOTHING_SHOWN, images_known, of_known, percent, quoted, ratio
from debiaspl.report.chance import LEVEL, any_at_least, at_least, at_most, drawn_at_most, told
from debiaspl.report.finding import Finding

NONE_STANDS_OUT = "No class stands out; see in the confusion what is taken for what."
"""All may be mistaken alike: that their recalls are equal does not say that they are good."""


def neglected_finding(audit: Audit) -> Finding:
    """What is more than chance comes first."""
    found = audit.agreement
    looks = (audit.shares.never != []) + (found is not None)
    options = [_never(audit, looks)] if audit.shares.never else []
    options += [] if found is None else [_least_recognised(audit, found, looks)]
    options = options or [_least_predicted(audit)]
    return next((one for one in options if one.chance is not None and one.chance <= LEVEL), options[0])


def _never(audit: Audit, looks: int) -> Finding:
    """Classes without a prediction; what to do depends on whether there are images of them."""
    never = audit.shares.never
    some = ", ".join(quoted(audit, number) for number in never[:3])
    more = f" and {len(never) - 3:,} more" if len(never) > 3 else ""
    verb, them = ("is", "it") if len(never) == 1 else ("are", "them")
    fact = f"{len(never):,} of {len(audit.classes):,} classes {verb} never predicted: {some}{more}"
    found = audit.agreement
    images = 0 if found is None else int(found.cells.of_true[never].sum())
    if found is None or (images == 0 and audit.few_known):
        chance = min(1.0, looks * _chance_of_never_evenly(audit))
        todo = f"Check that the images hold {them} and that the names are right; then label a few images of {them}."
        return Finding(f"{fact}; {told(chance)}.", todo if chance <= LEVEL else NOTHING_SHOWN, "counts", chance)
    if images == 0:
        return Finding(
            f"{fact}; no image with a known class is of {them}.", "Nothing to mend, as far as is known.", "counts"
        )
    chance = min(1.0, looks * _chance_of_never(found, never))
    return Finding(
        f"{fact}, although {images_known(audit, images)} of {them}; {told(chance)}.",
        "See what they are taken for, and label a few of them." if chance <= LEVEL else NOTHING_SHOWN,
        "confusion",
        chance,
    )


def _chance_of_never_evenly(audit: Audit) -> float:
    """How often as many classes stay empty where all are predicted evenly.

    The classes are taken as empty by themselves: in truth one that is empty fills the others, so chance does less."""
    classes, total = len(audit.classes), len(audit.predictions)
    return any_at_least(len(audit.shares.never), [float(1 - 1 / classes) ** total] * classes)


def _chance_of_never(found: Agreement, never: list[int]) -> float:
    """The same where each is predicted as often as it occurs; with one image more, for a few truths make no share 1."""
    true, known = found.cells.of_true, found.known
    empty = (1 - true[true > 0] / (known + 1)) ** known
    return any_at_least(int(np.count_nonzero(true[never])), empty.tolist())


def _least_recognised(audit: Audit, found: Agreement, looks: int) -> Finding:
    """Against a recall that is the same for all: the right ones of a class are then drawn from all right ones."""
    recall = [1.0 if value is None else value for value in found.recall]
    true, right = found.cells.of_true, found.cells.right
    looked_at, all_right = looks * int(np.count_nonzero(true)), int(right.sum())

    def chance_of(number: int) -> float:
        return min(1.0, looked_at * drawn_at_most(int(right[number]), int(true[number]), all_right, found.known))

    lowest = int(np.argmin(recall))
    below = [int(number) for number in np.argsort(recall, kind="stable") if recall[number] < found.accuracy]
    worst = next((number for number in below if chance_of(number) <= LEVEL), lowest)
    least = "least" if recall[worst] == recall[lowest] else "less than others"
    fact = f"{of_known(audit)}{quoted(audit, worst)} is recognised {least}: {percent(recall[worst])} of its images"
    if recall[worst] == 1:
        return Finding(f"{fact}. No image with a known class is mistaken.", "Nothing to mend here.", "truth")
    chance = chance_of(worst)
    fact += f", {percent(found.accuracy)} of all; {told(chance)}"
    other, share = _taken_for(audit, found, worst)
    if other is None:
        todo = f"Look at the images of {quoted(audit, worst)} that are mistaken, and label a few."
    else:
        taken = quoted(audit, other)
        fact += f". {percent(share)} of them are taken for {taken}"
        todo = f"Look at images of {quoted(audit, worst)} and {taken} side by side, and label a few of both."
    return Finding(f"{fact}.", todo if chance <= LEVEL else NONE_STANDS_OUT, "confusion", chance)


def _taken_for(audit: Audit, found: Agreement, worst: int) -> tuple[int | None, float]:
    """Which class its images are taken for and how many of them, where that is no chance: mistakes fall on some
    class."""
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
    fact = (
        f"{name} is predicted least, {times:.2f} times as often as an even share; the ratio of the most to the least "
        f"predicted class is {ratio(audit.shares.imbalance_ratio)}"
    )
    if times * MUCH > 1:
        return Finding(f"No class is neglected much: {fact}.", "Nothing to mend here.", "counts")
    todo = f"Label a few images of {name}, and give their true classes as a column: --truth."
    return Finding(f"{fact}; {told(chance)}.", todo if chance <= LEVEL else NOTHING_SHOWN, "counts", chance)

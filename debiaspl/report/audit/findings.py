"""In plain words: the three things a person should know, each with the next thing to do."""

from dataclasses import dataclass

import numpy as np

from debiaspl.report.audit.numbers import Audit
from debiaspl.report.audit.picks import UNCERTAIN, favoured_class
from debiaspl.report.audit.words import among_known, images_known, of_known, percent, quoted, ratio

MUCH = 1.2
"""Times an even share from which on a class is called favoured."""
ENOUGH, ENOUGH_PER_CLASS = 100, 10
"""Images, and images per class, from which on shares of what a threshold keeps say more than chance does."""


@dataclass(frozen=True)
class Finding:
    """What was found, what to do next, and the part of the page that shows it."""

    fact: str
    todo: str
    part: str


def findings(audit: Audit, where: str = "below") -> list[Finding]:
    """Which class is favoured, which is neglected, and what a correction would change.

    ``where`` says where the images are shown.
    """
    return [_favoured(audit, where), _neglected(audit), _correction(audit, where)]


def _favoured(audit: Audit, where: str) -> Finding:
    number = favoured_class(audit)
    name, times = quoted(audit, number), float(audit.shares.times_even[number])
    count, total = int(audit.shares.counts[number]), len(audit.predictions)
    fact = f"{name} is predicted {times:.1f} times as often as an even share ({count:,} of {total:,} images)"
    compared, by_truth = times, False
    if audit.agreement is not None and audit.agreement.cells.of_true[number]:
        predicted = int(audit.agreement.cells.of_predicted[number])
        true = int(audit.agreement.cells.of_true[number])
        compared, by_truth = predicted / true, True
        fact = (
            f"{of_known(audit)}{name} is predicted {compared:.1f} times as often as it occurs "
            f"({predicted:,} times; {true:,} are true)"
        )
    if compared < MUCH:
        measure = f"as it occurs{among_known(audit)}" if by_truth else "as an even share"
        return Finding(
            f"No class is favoured much: {name}, the most so, is predicted {compared:.1f} times as often {measure}.",
            "Look at the classes with the lowest recall instead." if by_truth else "Nothing to mend here.",
            "counts",
        )
    if audit.predictions.confidence is None:
        todo = f"Label a few of its images. With a confidence for each, the least certain ones are shown {where}."
    else:
        shown = min(UNCERTAIN, count)
        todo = f"Of its {shown} least certain images, shown {where}, label a few."
    return Finding(f"{fact}.", todo, "uncertain" if audit.predictions.confidence is not None else "counts")


def _neglected(audit: Audit) -> Finding:
    if audit.shares.never:
        return _never(audit, audit.shares.never)
    if audit.agreement is not None:
        return _least_recognised(audit)
    least = int(audit.shares.counts.argmin())
    times = float(audit.shares.times_even[least])
    return Finding(
        f"{quoted(audit, least)} is predicted least, {times:.2f} times as often as an even share; the ratio of the "
        f"most to the least predicted class is {ratio(audit.shares.imbalance_ratio)}.",
        f"Label a few images of {quoted(audit, least)}, and give their true classes as a column: --truth.",
        "counts",
    )


def _never(audit: Audit, never: list[int]) -> Finding:
    """Classes without a prediction; what to do depends on whether there are images of them."""
    some = ", ".join(quoted(audit, number) for number in never[:3])
    more = f" and {len(never) - 3:,} more" if len(never) > 3 else ""
    verb, them = ("is", "it") if len(never) == 1 else ("are", "them")
    fact = f"{len(never):,} of {len(audit.classes):,} classes {verb} never predicted: {some}{more}"
    if audit.agreement is None:
        todo = f"Check that the images hold {them} and that the names are right; then label a few images of {them}."
        return Finding(f"{fact}.", todo, "counts")
    images = int(audit.agreement.cells.of_true[never].sum())
    if images == 0:
        return Finding(
            f"{fact}; no image with a known class is of {them}.", "Nothing to mend, as far as is known.", "counts"
        )
    return Finding(
        f"{fact}, although {images_known(audit, images)} of {them}.",
        "See what they are taken for, and label a few of them.",
        "confusion",
    )


def _least_recognised(audit: Audit) -> Finding:
    assert audit.agreement is not None
    recall = [1.0 if value is None else value for value in audit.agreement.recall]
    worst = int(np.argmin(recall))
    fact = f"{of_known(audit)}{quoted(audit, worst)} is recognised least: {percent(recall[worst])} of its images"
    mistakes = audit.agreement.cells.mistakes()
    own = np.flatnonzero(mistakes.true == worst)
    if not len(own):
        return Finding(f"{fact}. No image with a known class is mistaken.", "Nothing to mend here.", "truth")
    taken = int(mistakes.predicted[own[0]])
    share = int(mistakes.count[own[0]]) / int(audit.agreement.cells.of_true[worst])
    return Finding(
        f"{fact}; {percent(share)} of them are taken for {quoted(audit, taken)}.",
        f"Look at images of {quoted(audit, worst)} and {quoted(audit, taken)} side by side, and label a few of both.",
        "confusion",
    )


def _correction(audit: Audit, where: str) -> Finding:
    after = audit.change
    if after is None:
        return _threshold(audit)
    if not len(after.rows):
        return _unchanged(audit, after.strength)
    before = ratio(audit.shares.imbalance_ratio)
    changed = percent(len(after.rows) / len(audit.predictions), 1)
    fact = (
        f"Debiasing with strength {after.strength:g} would change {changed} of "
        f"the labels and bring the imbalance from {before} to {ratio(after.shares.imbalance_ratio)}"
    )
    todo = f"Look through the images that change class, shown {where}. If their new labels are better, debias."
    if after.accuracy is not None and audit.agreement is not None:
        fact += f"; accuracy from {percent(audit.agreement.accuracy, 1)} to {percent(after.accuracy, 1)}"
        fact += among_known(audit)
        if after.accuracy < audit.agreement.accuracy:
            todo = "Keep these labels as they are, or try a smaller --strength: here the correction does not help."
    return Finding(f"{fact}.", todo, "change")


def _unchanged(audit: Audit, strength: float) -> Finding:
    fact = f"Debiasing with strength {strength:g} would change none of the {len(audit.predictions):,} labels"
    if strength == 0:
        return Finding(f"{fact}: at that strength nothing is corrected.", "Try --strength 0.5.", "change")
    return Finding(
        f"{fact}: no second class is near enough to the first.",
        f"Keep these labels, or see whether a larger --strength changes any: --strength {2 * strength:g}.",
        "change",
    )


def _threshold(audit: Audit) -> Finding:
    """Without scores the correction cannot be tried; what a threshold does can still be told."""
    save = "Save the probabilities or logits of every class too: then the audit shows what debiasing would change."
    if audit.thresholds is None:
        return Finding(
            "These are labels alone: they do not tell which class came second, so what debiasing would change cannot "
            "be computed.",
            save,
            "change",
        )
    strict = next(row for row in audit.thresholds if row.threshold == 0.95)
    if strict.kept == 0:
        return Finding("No prediction has a confidence of 0.95.", f"Choose a lower threshold. {save}", "thresholds")
    fact = f"A threshold of 0.95 keeps {strict.kept:,} of {len(audit.predictions):,} images"
    classes = len(audit.classes)
    if strict.kept < max(ENOUGH, ENOUGH_PER_CLASS * classes):
        return Finding(f"{fact}, too few to tell how evenly it keeps {classes:,} classes.", save, "thresholds")
    before, after = audit.shares, strict.shares
    largest = [float(shares.times_even.max()) for shares in (before, after)]
    worse = largest[1] > largest[0] and after.effective_classes < before.effective_classes
    return Finding(
        f"{fact}. The most predicted class has {largest[1]:.2f} times an even share of these, {largest[0]:.2f} of all; "
        f"effective classes: {ratio(after.effective_classes)} and {ratio(before.effective_classes)}.",
        f"Do not count on a threshold against bias. {save}" if worse else save,
        "thresholds",
    )

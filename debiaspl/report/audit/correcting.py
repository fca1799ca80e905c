"""What a correction would change, or, where only confidences are known, what a threshold does."""

import numpy as np

from debiaspl.report.audit.change import Change
from debiaspl.report.audit.measures import Shares
from debiaspl.report.audit.numbers import Audit
from debiaspl.report.audit.words import among_known, percent, quoted, ratio, shares_told
from debiaspl.report.chance import LEVEL, Finding, at_least, at_most, drawn_at_least, either_way, told


def correction_finding(audit: Audit, where: str) -> Finding:
    after = audit.change
    if after is None:
        return _threshold(audit)
    if not len(after.rows):
        return _unchanged(audit, after.strength)
    changed = percent(len(after.rows) / len(audit.predictions), 1)
    off, then = audit.shares.distance, after.shares.distance
    assert off is not None
    assert then is not None
    fact = (
        f"Debiasing with strength {after.strength:g} would change {changed} of the labels. {percent(off, 1)} of them "
        f"would have to change class to match {shares_told(audit)}, {percent(then, 1)} after debiasing"
    )
    look = f"Look at the images that change class, shown {where}. If their new labels are better, use debiasing."
    if after.accuracy is not None and audit.agreement is not None:
        return _by_accuracy(audit, after, fact, look)
    chance = chance_of_imbalance(audit.shares)
    todo = look if chance <= LEVEL else "Keep these labels: no significant imbalance to remove."
    return Finding(f"{fact}. This imbalance is {told(chance)}.", todo, "change", chance)


def _by_accuracy(audit: Audit, after: Change, fact: str, look: str) -> Finding:
    """By true classes: images that become right against images that become wrong."""
    truth, agreement = audit.predictions.truth, audit.agreement
    assert truth is not None
    assert agreement is not None
    assert after.accuracy is not None
    right, was_right = after.label == truth, audit.predictions.label == truth
    better, worse = int(np.count_nonzero(right & ~was_right)), int(np.count_nonzero(was_right & ~right))
    chance = either_way(better, worse)
    fact += f"; accuracy from {percent(agreement.accuracy, 1)} to {percent(after.accuracy, 1)}{among_known(audit)}"
    if better == worse:
        return Finding(f"{fact}.", look, "change", chance)
    fact += f" ({better:,} become{'s' if better == 1 else ''} right, {worse:,} wrong; {told(chance)})"
    if chance > LEVEL:
        return Finding(f"{fact}.", look, "change", chance)
    todo = "Keep these labels, or try a smaller --strength: debiasing makes them worse."
    return Finding(f"{fact}.", "Use debiasing: these labels get better." if better > worse else todo, "change", chance)


def chance_of_imbalance(shares: Shares) -> float:
    """The probability that some class is predicted as often as the most frequent one, or as rarely as the rarest, where
    all shares are even."""
    classes, total = len(shares.counts), int(shares.counts.sum())
    most = at_least(int(shares.counts.max()), total, 1 / classes)
    return min(1.0, 2 * classes * min(most, at_most(int(shares.counts.min()), total, 1 / classes)))


def _unchanged(audit: Audit, strength: float) -> Finding:
    fact = f"Debiasing with strength {strength:g} would change none of the {len(audit.predictions):,} labels"
    if strength == 0:
        return Finding(f"{fact}: at that strength nothing is corrected.", "Try --strength 0.5.", "change")
    return Finding(
        f"{fact}: the second class is never close enough to the first.",
        f"Keep these labels, or try a larger strength: --strength {2 * strength:g}.",
        "change",
    )


def _threshold(audit: Audit) -> Finding:
    """What a threshold does, for files without scores of every class, where debiasing cannot be tried."""
    save = "Save the probabilities or logits of every class too, to see what debiasing would change."
    if audit.thresholds is None:
        return Finding(
            "The file has labels only. What debiasing would change cannot be computed without the scores of the other "
            "classes.",
            save,
            "change",
        )
    strict = next(row for row in audit.thresholds if row.threshold == 0.95)
    if strict.kept == 0:
        return Finding("No prediction has a confidence of 0.95.", f"Choose a lower threshold. {save}", "thresholds")
    fact = f"A threshold of 0.95 keeps {strict.kept:,} of {len(audit.predictions):,} images"
    classes = len(audit.classes)
    if strict.kept < audit.enough:  # with fewer images, the number of effective classes falls anyway
        return Finding(f"{fact}, too few to tell how evenly it keeps {classes:,} classes.", save, "thresholds")
    before, after = audit.shares, strict.shares
    most = int(after.counts.argmax())
    was, now = (float(shares.times_even[most]) for shares in (before, after))
    worse = now > was and after.effective_classes < before.effective_classes
    chance = _chance_of_kept(before, after, most) if worse else None
    fact += (
        f". {quoted(audit, most)}, the class kept most, has {now:.2f} times an even share of these, and {was:.2f} "
        "times of all images; "
        f"effective classes: {ratio(after.effective_classes)} and {ratio(before.effective_classes)}"
    )
    blamed = "A threshold does not remove the bias. " if chance is not None and chance <= LEVEL else ""
    said = "" if chance is None else f"; {told(chance)}"
    return Finding(f"{fact}{said}.", f"{blamed}{save}", "thresholds", chance)


def _chance_of_kept(before: Shares, after: Shares, most: int) -> float:
    """The probability that as many images of some class are kept where every image is equally likely to be kept."""
    kept, total = int(after.counts.sum()), int(before.counts.sum())
    once = drawn_at_least(int(after.counts[most]), kept, int(before.counts[most]), total)
    return min(1.0, len(after.counts) * once)

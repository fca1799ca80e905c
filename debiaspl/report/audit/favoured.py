"""Which class is predicted too often, and whether chance alone would do as much."""

from dataclasses import dataclass

import numpy as np

from debiaspl.report.audit.numbers import Audit
from debiaspl.report.audit.truth import Agreement
from debiaspl.report.chance import LEVEL, at_least, flipped

MUCH = 1.2
"""Times what is expected from which on a class is called favoured, and below whose inverse it is called neglected."""


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
        """Whether the class is favoured much, and more than by chance."""
        return self.times >= MUCH and self.chance <= LEVEL


def favoured(audit: Audit) -> Favoured:
    """The class with the most predictions too many; where one is favoured more than by chance, such a one.

    Where a few truths alone are known and show nothing, all images are looked at too."""
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
    """Were a class not favoured, images wrongly called so would be as many as images of it called otherwise, but for
    chance: a coin for each of them."""
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

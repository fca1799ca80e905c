"""Findings, and whether they are significant: exact tests, intervals, and their wording.

``scipy.special`` is imported where it is used, in 0.2 s. ``scipy.stats`` is not: every run that writes its page would
need a second more.
"""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

LEVEL = 0.01
"""A finding is significant, and gives advice, where chance alone would show as much less often than this."""
SMALLEST = 1e-6
"""A smaller probability is printed as "less than" this."""


@dataclass(frozen=True)
class Finding:
    """What was found, what to do next, and the part of the page that shows it."""

    fact: str
    todo: str
    part: str
    chance: float | None = None
    """How often chance alone would show as much; None where no test applies."""


def told(chance: float) -> str:
    """Whether it is significant, and how often chance alone would show as much."""
    side = "significant" if chance <= LEVEL else "not significant"
    return side if chance > 0.5 else f"{side}, {_odds(chance)} by chance"


def at_least(count: int, trials: int, share: float) -> float:
    """The probability of ``count`` or more successes in these trials (binomial)."""
    from scipy.special import bdtrc

    return float(bdtrc(min(count - 1, trials), trials, share))


def at_most(count: int, trials: int, share: float) -> float:
    """The probability of ``count`` or fewer successes."""
    return at_least(trials - count, trials, 1 - share)


def drawn_at_least(count: int, draws: int, special: int, total: int) -> float:
    """The probability that ``count`` or more of the draws, without replacement from ``total``, are special
    (hypergeometric)."""
    from scipy.special import gammaln

    def ways(things: Any, chosen: Any) -> Any:
        """The logarithm of the number of ways to choose."""
        return gammaln(things + 1.0) - gammaln(chosen + 1.0) - gammaln(things - chosen + 1.0)

    least, most = max(0, draws + special - total), min(draws, special)
    if count <= least:
        return 1.0
    found = np.arange(count, most + 1)
    logs = ways(special, found) + ways(total - special, draws - found) - ways(total, draws)
    return min(1.0, float(np.exp(logs).sum()))


def drawn_at_most(count: int, draws: int, special: int, total: int) -> float:
    """The probability that ``count`` or fewer are."""
    return drawn_at_least(draws - count, draws, total - special, total)


def any_at_least(count: int, probabilities: Iterable[float]) -> float:
    """The probability that ``count`` or more of independent events happen, each with its own probability."""
    happened = np.zeros(max(count, 0) + 1)
    happened[0] = 1.0  # the last place gathers "so many or more"
    for probability in probabilities:
        moved = happened[:-1] * probability
        happened[:-1] -= moved
        happened[1:] += moved
    return float(happened[-1]) if count > 0 else 1.0


def mcnemar(more: int, less: int, sides: int = 2) -> float:
    """The p-value of the exact test of pairs (McNemar's, and the sign test): a fair coin for each pair. With one side,
    only an excess of ``more`` counts."""
    if sides == 1:
        return at_least(more, more + less, 0.5)
    return min(1.0, 2 * at_least(max(more, less), more + less, 0.5))


def wilson(right: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share: unlike the normal one it stays within 0 to 1, and has a width at 0 and 1."""
    if total == 0:
        return 0.0, 1.0
    z, share = statistics.NormalDist().inv_cdf(0.975), right / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    reach = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    # At the ends exactly: rounding would leave 1e-18 there.
    return (0.0 if right == 0 else middle - reach), (1.0 if right == total else middle + reach)


def exact_interval(right: float, total: float, level: float) -> tuple[float, float]:
    """The exact interval of a share (Clopper and Pearson): it holds it at least this often. Counts may be fractions."""
    from scipy.special import betaincinv

    tail, wrong = (1 - level) / 2, total - right
    low = float(betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0
    return low, float(betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0


def _odds(chance: float) -> str:
    if chance < SMALLEST:
        return f"less than 1 in {round(1 / SMALLEST):,}"
    times = 1 / chance
    rounded = round(times, 1 - math.floor(math.log10(times)))
    if chance > LEVEL:  # rounded up it would read as significant
        rounded = min(rounded, 1 / LEVEL - 1)
    return f"1 in {rounded:,.0f}"
